-- sliding_window_log: admit when the units of (t - W, t] and the cost fit into S. A unit lent in a cell is missing from
-- the lender until a window (and the guard) after its end; of each peer, the most lent in any cell that still weighs,
-- the next one included.
-- Fields: u units in the log, w the cell of the last write, s units by the cell that they were admitted in, and the log
-- itself, a queue of pieces. s is "others;cell:units;cell:units;": first the cell of the last write, and before it the
-- sum of those other cells whose units are still in the window when that cell ends. Piece p is the field qp,
-- "d:units;d:units;", with entries of time base + d. What a piece holds is said by its head, "p base sum n;": its units
-- and entries. The first piece's head is the field a, the last one's h (of a single piece: h), all between them d. So
-- an admission writes the last piece only, and whole pieces are passed over by their heads. Two pieces beside each
-- other hold more entries together than fit into one (but for the first and the last), so that there are not many,
-- whatever was refunded.
local ENTRIES = 64 -- entries of a piece, after which a new one is begun
local OWED = 64 -- entries of a log that owes, or as many as it has rights
local NEWEST = 16 -- entries that are refunded at a time

kinds.sliding_window_log = function()
  local function field(piece) return 'q' .. int(piece) end
  local function head_of(p) return string.format('%d %d %d %d;', p.piece, p.base, p.sum, p.n) end

  -- head reads the head at a position of a text of heads, and where it ends.
  local function head(text, pos)
    local piece, base, sum, n, after = string.match(text, '^(%d+) (%d+) (%d+) (%d+);()', pos)
    if not piece then return nil, pos end
    return {piece = tonumber(piece), base = tonumber(base), sum = tonumber(sum), n = tonumber(n)}, after
  end

  -- find returns the first index of a list at which a field of what is there is at least so much, by halving.
  local function find(list, name, least)
    local lo, hi = 1, #list + 1
    while lo < hi do
      local mid = floor_div(lo + hi, 2)
      if list[mid][name] >= least then hi = mid else lo = mid + 1 end
    end
    return lo
  end

  -- Queue is the log where more is to be known of it than how it ends: the heads of the first piece (a, '' where it is
  -- the last one, too), of the last, and of those between (d, nil as long as nobody asked for them).
  local Queue = {}
  Queue.__index = Queue

  function Queue.open(h, a, last)
    return setmetatable({h = h, a = a or '', d = nil, last = last or '',
      texts = {}, -- pieces as they are to be written
      changed = {}, -- pieces to be written
      over = {}, -- the fields of pieces to be deleted
      stored = nil, known = nil, asked = false}, Queue)
  end

  -- middle returns the heads between the first one and the last; stored are those in the hash.
  function Queue:middle()
    if not self.d then
      self.d = self.a ~= '' and redis.call('HGET', self.h.key, 'd') or ''
      self.stored = self.d
    end
    return self.d
  end

  function Queue:load(p)
    local text = self.texts[p.piece]
    if not text then
      text = redis.call('HGET', self.h.key, field(p.piece))
      self.texts[p.piece] = text
    end
    return text
  end

  function Queue:drop(p)
    self.over[#self.over + 1], self.changed[p.piece] = field(p.piece), nil
  end

  -- trim drops the entries of a piece up to a time, and says whether there were no others.
  function Queue:trim(p, time)
    local text, at = self:load(p), 1
    for d, units, after in string.gmatch(text, '(%d+):(%d+);()') do
      if p.base + d > time then break end
      p.sum, p.n, at = p.sum - units, p.n - 1, after
    end
    if at > 1 then self.texts[p.piece], self.changed[p.piece] = string.sub(text, at), true end
    return at > #text
  end

  -- expire drops what has left the window, of a log whose first piece began so long ago: entries of that piece, and if
  -- those were all, whole pieces before one that began so long ago, and then entries of that one. It returns how many
  -- units they are.
  function Queue:expire()
    local gone, left = self.h.now - self.h.window, 0
    local p = head(self.a ~= '' and self.a or self.last, 1)
    repeat
      local held = p.sum
      local empty = self:trim(p, gone)
      left = left + held - p.sum
      if not empty or self.a == '' then break end
      self:drop(p)
      local heads = self:middle() .. self.last
      local first, rest = head(heads, 1)
      local following, after = head(heads, rest)
      while following and following.base <= gone do
        left = left + first.sum
        self:drop(first)
        first, rest = following, after
        following, after = head(heads, rest)
      end
      p, self.a, self.d = first, '', ''
      if following then self.a, self.d = head_of(p), string.sub(heads, rest, #heads - #self.last) end
    until p.base > gone
    if self.a ~= '' then self.a = head_of(p) else self.last = head_of(p) end
    return left
  end

  -- pieces returns all pieces that are left, each with the units up to its end.
  function Queue:pieces()
    if self.known then return self.known end
    local list, upto = {}, 0
    for piece, base, sum, n in string.gmatch(self.a .. self:middle() .. self.last, '(%d+) (%d+) (%d+) (%d+);') do
      upto = upto + sum
      list[#list + 1] = {piece = tonumber(piece), base = tonumber(base), sum = tonumber(sum), n = tonumber(n),
        upto = upto}
    end
    self.known = list
    return list
  end

  -- entries returns what is in a piece: each entry's time, and the units up to it.
  function Queue:entries(p)
    if p.entries then return p.entries end
    local list, upto = {}, p.upto - p.sum
    for d, units in string.gmatch(self:load(p), '(%d+):(%d+);') do
      upto = upto + units
      list[#list + 1] = {time = p.base + d, upto = upto}
    end
    p.entries = list
    return list
  end

  -- newest returns the time of the last entry, of a log that has one.
  function Queue:newest()
    local piece, base, n = string.match(self.last, '^(%d+) (%d+) %d+ (%d+)')
    local text
    if n == '0' then -- what it held was refunded
      local all = self:pieces()
      local i = #all
      while all[i].n == 0 do i = i - 1 end
      base, text = all[i].base, self:load(all[i])
    else
      text = self.texts[tonumber(piece)] or redis.call('HGET', self.h.key, 'q' .. piece)
    end
    return base + string.match(text, '(%d+):%d+;$', -32)
  end

  -- gone returns how many units will have left the window at time t, of those written.
  function Queue:gone(t)
    local all, window = self:pieces(), self.h.window
    local p = all[find(all, 'base', t - window + 1) - 1]
    if not p then return 0 end
    local list = self:entries(p)
    local e = list[find(list, 'time', t - window + 1) - 1]
    return e and e.upto or p.upto - p.sum
  end

  -- falls returns when at least so many units have left the window. Who asks once, mostly about the first units, is
  -- answered from the first piece as it stands, without lists.
  function Queue:falls(leave)
    local h = self.h
    if leave <= 0 then return 0 end
    if not self.asked and self.a .. self.last ~= '' then
      self.asked = true
      local p, upto = head(self.a ~= '' and self.a or self.last, 1), 0
      if p.sum >= leave then
        for d, units in string.gmatch(self:load(p), '(%d+):(%d+);') do
          upto = upto + units
          if upto >= leave then return p.base + d + h.window end
        end
      end
    end
    local all = self:pieces()
    local p = all[find(all, 'upto', leave)]
    if not p then return h.now + h.window end -- what was taken just now
    local list = self:entries(p)
    return list[find(list, 'upto', leave)].time + h.window
  end

  -- append enters units that were taken now.
  function Queue:append(taken)
    local now, p, text = self.h.now, head(self.last, 1), ''
    if p then text = self:load(p) end
    local d, units = string.match(text, '(%d+):(%d+);$', -40)
    if d and p.base + d == now then -- one entry for each time
      text = string.sub(text, 1, -#units - 2) .. int(units + taken) .. ';'
    else
      if not p or p.n >= ENTRIES then
        if p and self.a == '' then
          self.a = self.last
        elseif p then
          self.d = self:middle() .. self.last
        end
        p, text = {piece = p and p.piece + 1 or 1, base = now, sum = 0, n = 0}, ''
      elseif p.n == 0 then
        p.base, text = now, ''
      end
      text, p.n = text .. int(now - p.base) .. ':' .. int(taken) .. ';', p.n + 1
    end
    p.sum = p.sum + taken
    self.texts[p.piece], self.changed[p.piece], self.last = text, true, head_of(p)
  end

  -- lay makes a list of pieces what is left of the log.
  function Queue:lay(list)
    self:middle() -- that stored is known
    local text, n = {}, #list
    for i = 2, n - 1 do text[i - 1] = head_of(list[i]) end
    self.a, self.d, self.last = n > 1 and head_of(list[1]) or '', table.concat(text), n > 0 and head_of(list[n]) or ''
    self.known = nil
  end

  -- join puts the entries of a piece behind those of the one before, if they fit and it is not the last.
  function Queue:join(list, i)
    local p, q = list[i], list[i + 1]
    if not p or i + 1 >= #list or p.n + q.n > ENTRIES then return end
    local text = string.gsub(self:load(q), '(%d+):', function(d) return int(d + q.base - p.base) .. ':' end)
    self.texts[p.piece], self.changed[p.piece] = self:load(p) .. text, true
    p.n, p.sum = p.n + q.n, p.sum + q.sum
    self:drop(q)
    table.remove(list, i + 1)
  end

  -- refund takes back up to so many units of a time, and returns how many.
  function Queue:refund(time, units)
    local list = self:pieces()
    local i = find(list, 'base', time + 1) - 1
    local p = list[i]
    if not p then return 0 end
    local text, before, from, held, to = self:load(p), 1, nil, nil, nil
    for d, n, after in string.gmatch(text, '(%d+):(%d+);()') do
      if p.base + d >= time then
        if p.base + d == time then from, held, to = before, tonumber(n), after end
        break
      end
      before = after
    end
    if not from then return 0 end
    units = math.min(units, held)
    local entry = ''
    if units < held then entry = int(time - p.base) .. ':' .. int(held - units) .. ';' else p.n = p.n - 1 end
    self.texts[p.piece], self.changed[p.piece] = string.sub(text, 1, from - 1) .. entry .. string.sub(text, to), true
    p.sum = p.sum - units
    self:join(list, i)
    self:join(list, i - 1)
    self:lay(list)
    return units
  end

  -- empty drops all pieces.
  function Queue:empty()
    for _, p in ipairs(self:pieces()) do self.over[#self.over + 1] = field(p.piece) end
    self:lay({})
    self.texts, self.changed = {}, {}
  end

  -- missing returns what is missing at time t because of a peer, leaving the rows of one cell out.
  local function missing(h, peer, t, without)
    local most = 0
    for cell, rows in pairs(rows_of(h)) do
      local row = rows[peer]
      if row and cell ~= without and weighs(h, cell) > t then most = math.max(most, row.l - row.g) end
    end
    return most
  end

  -- is_plain says whether S is what the limit says, at any time.
  local function is_plain(h) return h.cells == nobody and h.loss == 0 end

  -- share_at returns S at a time. What is missing is summed up in the first cell that weighs then.
  local function share_at(h, t)
    if is_plain(h) then return h.entitlement end
    if t < closed(h) then return 0 end
    local lack, first, lent_out = 0, nil, 0
    if t < untold_until(h) then lack = untold(h) end -- what nobody told of has not left the window
    for cell, sum in pairs(h.cells) do
      if weighs(h, cell) > t and (not first or cell < first) then first, lent_out = cell, sum.missing end
    end
    return h.entitlement + borrowed(h, floor_div(t, h.length)) - lack - lent_out
  end

  local function next_opens(h) return (h.cell + 1) * h.length end

  -- oldest is the last cell of which nothing is in the window any more when the current cell ends.
  local function oldest(h) return h.cell - ceil_div(h.window, h.length) end

  local Log = {room_burst = zero, settle = zero, queue = false, sums = false, steps = false}
  Log.__index = Log

  function Log.open(h)
    local v = redis.call('HMGET', h.key, 'rows', 'u', 'w', 'a', 'h', 's')
    local written, first = v[3], v[4]
    read_rows(h, v[1])
    h.absent = not v[1] and not v[2]
    if written then h.kept = math.max(h.kept, tonumber(written)) end
    local self = setmetatable({h = h, v = v, share = is_plain(h) and h.entitlement or share_at(h, h.now),
      used = tonumber(v[2] or 0), taken = 0, dirty = false}, Log)
    if not first or first == '' then first = v[5] end
    local begun = first and string.match(first, '^%d+ (%d+)')
    if begun and begun + h.window <= h.now then self.used = self.used - self:pieces():expire() end
    return self
  end

  -- pieces returns the queue.
  function Log:pieces()
    if not self.queue then self.queue = Queue.open(self.h, self.v[4], self.v[5]) end
    return self.queue
  end

  -- cells returns the units by the cell that they were admitted in.
  function Log:cells()
    if self.sums then return self.sums end
    local sums, cell = {}, self.h.cell
    for k, units in string.gmatch(self.v[6] or '', '(%d+):(%d+);') do sums[tonumber(k)] = tonumber(units) end
    if self.taken > 0 then sums[cell] = (sums[cell] or 0) + self.taken end
    self.sums = sums
    return sums
  end

  -- staying returns the units that are still in the window when the cell ends: those of the last cells, as many as
  -- there are in a window.
  function Log:staying()
    local h, v = self.h, self.v
    if not self.sums then
      if not v[6] then return self.taken end
      if v[3] == h.cell_text then
        local others, units = string.match(v[6], '^(%d+);%d+:(%d+);')
        if others then return others + units + self.taken end
      end
    end
    local staying, from = 0, oldest(h)
    for cell, units in pairs(self:cells()) do
      if cell > from then staying = staying + units end
    end
    return staying
  end

  -- reset_after returns after how many us the last entry leaves the window.
  function Log:reset_after()
    if self.taken > 0 then return self.h.window end
    if self.used <= 0 then return 0 end
    return self:pieces():newest() + self.h.window - self.h.now
  end

  function Log:state()
    return self.share, share_at(self.h, next_opens(self.h)), self.used, math.max(self.used - self:staying(), 0),
      self:reset_after()
  end

  function Log:free() return math.max(self.share - self.used, 0) end

  function Log:fits(cost, part) return cost <= portion(self.share, part) - self.used end

  -- plan returns steps, the times from now on at which S may change, each with what S is then, until when, and how many
  -- units will have left the window just before that. Between them, entries leave the window.
  function Log:plan()
    if self.steps then return self.steps end
    local h, steps = self.h, {}
    local opens = next_opens(h)
    local changes = {h.now, opens, opens + h.length, closed(h), untold_until(h)}
    for cell in pairs(h.cells) do changes[#changes + 1] = weighs(h, cell) end
    table.sort(changes)
    for i, from in ipairs(changes) do
      if from >= h.now and from ~= changes[i + 1] then
        steps[#steps + 1] = {from = from, share = share_at(h, from), til = changes[i + 1]}
      end
    end
    self.steps = steps
    return steps
  end

  function Log:retry(cost, part)
    local h, used, queue = self.h, self.used, self:pieces()
    if is_plain(h) then
      local share = portion(self.share, part)
      if cost > share then return -1 end
      return math.max(h.now, queue:falls(used - (share - cost))) - h.now
    end
    for _, step in ipairs(self:plan()) do
      local room = portion(step.share, part) - cost
      if room >= 0 then
        local last = not step.til or step.til > h.now + h.window
        if not last then step.gone = step.gone or queue:gone(step.til - 1) end
        if last or used - step.gone <= room then return math.max(step.from, queue:falls(used - room)) - h.now end
      end
    end
    return -1
  end

  function Log:take(cost)
    self.used, self.taken, self.dirty = self.used + cost, self.taken + cost, true
    local sums, cell = self.sums, self.h.cell
    if sums then sums[cell] = (sums[cell] or 0) + cost end
    return 0
  end

  -- charge enters the cost. If the log owes and has many entries, the newest takes it and becomes one of now. So its units
  -- leave the window later, never sooner. It says whether nothing was entered, because as much is as is counted at all.
  function Log:charge(cost)
    local h = self.h
    cost = math.min(cost, MAX - self.used)
    if self.taken == 0 and self.used >= OWED then
      local queue, n = self:pieces(), 0
      for _, p in ipairs(queue:pieces()) do n = n + p.n end
      if n >= math.max(self.share, OWED) then
        local newest = queue:newest()
        if newest < h.now then
          cost, self.steps = cost + self:refund(newest, floor_div(newest, h.length), MAX), false
        end
      end
    end
    if cost > 0 then self:take(cost) end
    return cost <= 0
  end

  function Log:spare(kept) return self.share - self.used - kept end

  -- As for the counter, lending within what is missing anyhow is free, and rights of the next cell must be free now.
  function Log:room(cell, peer, kept)
    if self:spare(0) < 0 then return 0 end
    local h = self.h
    local row, opens = row_of(h, cell, peer), next_opens(h)
    local out = row.l - row.g
    local shadow = math.max(out, missing(h, peer, h.now, cell)) - out
    if cell == h.cell then return shadow + self:spare(kept) end
    local coming = math.max(out, missing(h, peer, opens, cell)) - out
    return math.min(shadow + self:spare(0), coming + share_at(h, opens) - kept)
  end

  -- admitted returns the field s as it is to be. Where this cell has written before, one number of it is another.
  function Log:admitted()
    local h, v = self.h, self.v
    if not self.sums then
      if not v[6] then return '0;' .. h.cell_text .. ':' .. int(self.taken) .. ';' end
      if v[3] == h.cell_text then
        local before, units, after = string.match(v[6], '^(%d+;%d+:)(%d+)(.*)')
        if before then return before .. int(units + self.taken) .. after end
      end
    end
    local others, list, from = 0, {}, oldest(h)
    local sums = self:cells()
    for cell, units in pairs(sums) do
      if cell ~= h.cell and cell >= from and units > 0 then
        list[#list + 1] = int(cell) .. ':' .. int(units) .. ';'
        if cell > from then others = others + units end
      end
    end
    return int(others) .. ';' .. h.cell_text .. ':' .. int(math.max(sums[h.cell] or 0, 0)) .. ';' .. table.concat(list)
  end

  -- append writes what was taken where all else of the log stays as it is, and says whether that is so: into the last
  -- piece if there is room for an entry, or into the first one of all.
  function Log:append()
    if self.queue or self.taken == 0 then return false end
    local h, taken, last = self.h, self.taken, self.v[5]
    local piece, base, sum, n, text = '1', nil, 0, 0, ''
    if last and last ~= '' then
      piece, base, sum, n = string.match(last, '^(%d+) (%d+) (%d+) (%d+);')
      n = tonumber(n or 0)
      if n == 0 or n >= ENTRIES then return false end
      text = redis.call('HGET', h.key, 'q' .. piece)
    else
      base = int(h.now)
    end
    local d = int(h.now - base)
    if n > 0 and string.find(text, d .. ':', -40, true) then -- there may be an entry of this time
      self:pieces().texts[tonumber(piece)] = text
      return false
    end
    redis.call('HSET', h.key, 'u', int(self.used), 'w', h.cell_text, 's', self:admitted(),
      'h', string.format('%s %s %d %d;', piece, base, sum + taken, n + 1),
      'q' .. piece, text .. d .. ':' .. int(taken) .. ';')
    return true
  end

  -- write makes the queue in the hash what it is here.
  function Log:write()
    local h, v, queue, s = self.h, self.v, self:pieces(), self:admitted()
    if self.taken > 0 then queue:append(self.taken) end
    local set = {'u', int(self.used), 'w', h.cell_text, 's', s, 'h', queue.last}
    local function put(name, text)
      set[#set + 1], set[#set + 2] = name, text
    end
    if queue.a ~= (v[4] or '') then put('a', queue.a) end
    if queue.d ~= queue.stored then put('d', queue.d) end
    for piece in pairs(queue.changed) do put(field(piece), queue.texts[piece]) end
    if #queue.over > 0 then redis.call('HDEL', h.key, unpack(queue.over)) end
    redis.call('HSET', h.key, unpack(set))
  end

  -- refund_newest takes back up to so many units of the newest entries, of NEWEST at most.
  function Log:refund_newest(units)
    local queue, back = self:pieces(), 0
    for _ = 1, NEWEST do
      local list = queue:pieces()
      local i = #list
      while i > 0 and list[i].n == 0 do i = i - 1 end
      if i == 0 or back == units then break end
      local time = list[i].base + string.match(queue:load(list[i]), '(%d+):%d+;$')
      local given = self:refund(time, floor_div(time, self.h.length), units - back)
      if given == 0 then break end
      back = back + given
    end
    return back, NOT_REFUSED
  end

  function Log:refund(time, cell, units, newest)
    if newest then return self:refund_newest(units) end
    if time + self.h.window <= self.h.now then return 0, NO_LONGER_WEIGHS end
    self.dirty = true
    units = self:pieces():refund(time, units)
    if units > 0 then
      local sums = self:cells()
      self.used, sums[cell] = self.used - units, (sums[cell] or 0) - units
    end
    return units, NOT_REFUSED
  end

  -- The log is in order of time, so what was admitted without the store is entered now.
  function Log:book(_, units)
    self:take(units)
    return true
  end

  -- What counted at a time is one entry of that time: it leaves the window later than it did, never sooner.
  function Log:restore(_, units, time)
    time = math.min(time, self.h.now)
    if units <= self.used or time + self.h.window <= self.h.now then return end
    self:reset()
    local queue = self:pieces()
    queue:lay({{piece = 1, base = time, sum = units, n = 1}})
    queue.texts[1], queue.changed[1] = '0:' .. int(units) .. ';', true
    self.used, self.sums[floor_div(time, self.h.length)] = units, units
  end

  function Log:known() return self.used end

  function Log:reset()
    self:pieces():empty()
    self.used, self.taken, self.sums, self.dirty = 0, 0, {}, true
  end

  function Log:save()
    if not self.dirty then return end
    if not self:append() then self:write() end
    if self.v[3] ~= self.h.cell_text then keep(self.h) end
  end

  return Log
end
