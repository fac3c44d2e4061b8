-- The rows of a bucket, as they stand in the store (see ledger.lua).

-- What only buckets with rows need is made when the first of a call comes: most calls have none, and to make a function
-- takes as long as to use it.
local read_sums, rows_of, row_of, is_full, order, write_rows, add_rows, cell_at
local hold_of, set_hold, holders, lose_holds
local function know_rows()
  if read_sums then return end
  -- read_marks takes in what stands before the rows, and returns where they begin.
  local function read_marks(h, text)
    local vanished, whole, unknown, at = string.match(text, '^!(%d+) (%d+) (%S+);()')
    if not vanished then return 1 end
    h.vanished, h.whole = tonumber(vanished), tonumber(whole)
    h.lost_at = math.max(h.lost_at, h.vanished)
    if h.whole >= h.lost_at then
      h.lost_at, h.unknown = 0, {}
      for peer in string.gmatch(unknown, '[^,%-][^,]*') do
        local base, most = string.match(peer, '^%*(%d+):(%d+)$')
        if base then h.base, h.most = tonumber(base), tonumber(most) else h.unknown[peer] = true end
      end
    end
    h.loss = math.max(h.loss, h.vanished, h.whole)
    return at
  end

  -- read_sums takes in what stands before the rows; last is the last cell that has one. What this call has read or written
  -- already it need not read again.
  function read_sums(h, text)
    h.vanished, h.whole, h.unknown, h.loss, h.base, h.most = 0, 0, nobody, h.lost_at, nil, nil
    local at = read_marks(h, text)
    if h.cells ~= nobody and text == h.text then return end
    h.text, h.cells, h.rows, h.holds, h.last = text, {}, nil, nil, -1
    while true do
      local cell, into, out, y, z, missing, bytes, assigned, after =
        string.match(text, '^@(%d+) (%-?%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+) ?(%d*);()', at)
      if not cell then break end
      at, h.last = after, tonumber(cell)
      h.cells[h.last] = {cell = h.last, into = tonumber(into), out = tonumber(out), y = tonumber(y), z = tonumber(z),
        missing = tonumber(missing), bytes = tonumber(bytes), assigned = tonumber(assigned) or 0}
    end
    h.body = at
  end

  -- order returns the cells of a table by cell, from the first on.
  function order(cells)
    local list = {}
    for cell in pairs(cells) do list[#list + 1] = cell end
    table.sort(list)
    return list
  end

  -- texts_of returns the text of each cell's rows, as it was read or written last.
  local function texts_of(h)
    local texts, at = {}, h.body
    for _, cell in ipairs(order(h.cells)) do
      texts[cell] = string.sub(h.text, at, at + h.cells[cell].bytes - 1)
      at = at + h.cells[cell].bytes
    end
    return texts
  end

  -- split returns the rows with peers of a text, those of nodes, and how many these are. It is by far cheaper than to read them.
  local function split(text)
    local parts, from, at, now, count = {[true] = {}, [false] = {}}, 1, 1, false, 0
    local function part() if at > from then table.insert(parts[now], string.sub(text, from, at - 1)) end end
    while at <= #text do
      local name = string.find(text, ' ', at, true) + 1
      local node = string.byte(text, name) == MARK
      if node ~= now then
        part()
        from, now = at, node
      end
      if node then count = count + 1 end
      at = string.find(text, ';', name, true) + 1
    end
    part()
    return table.concat(parts[false]), table.concat(parts[true]), count
  end

  -- read_peers reads rows with peers.
  local function read_peers(h, text)
    for cell, peer, l, r, b, g, y, z in string.gmatch(text, '(%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+);') do
      cell = tonumber(cell)
      h.rows[cell] = h.rows[cell] or {}
      h.rows[cell][peer] = {l = tonumber(l), r = tonumber(r), b = tonumber(b), g = tonumber(g), y = tonumber(y), z = tonumber(z)}
    end
  end

  -- rows_of reads the rows with peers. holds has of each cell those of nodes, which stay text, how many they are, and the units
  -- that they come to.
  function rows_of(h)
    if h.rows then return h.rows end
    h.rows, h.holds = {}, {}
    if not h.text then return h.rows end
    if not string.find(h.text, ' ' .. ASSIGNED, h.body, true) then
      read_peers(h, string.sub(h.text, h.body))
      return h.rows
    end
    for cell, text in pairs(texts_of(h)) do
      local peers, nodes, count = split(text)
      read_peers(h, peers)
      if count > 0 then h.holds[cell] = {text = nodes, count = count, units = h.cells[cell].assigned} end
    end
    return h.rows
  end

  function row_of(h, cell, peer)
    local rows = rows_of(h)[cell]
    return rows and rows[peer] or {l = 0, r = 0, b = 0, g = 0, y = 0, z = 0}
  end

  -- is_full says whether there are so many rows with peers that there is room for none more, of a peer that has none in the cell.
  -- Rows that weigh no more are dropped when the next is written.
  local TIMES, ROWS = {sliding_window_counter = 2, sliding_window_log = 4, leaky_bucket = 2}, 24
  function is_full(h, cell, peer)
    local count = 0
    for k, rows in pairs(rows_of(h)) do
      if k == cell and rows[peer] then return false end
      for _ in pairs(weighs(h, k) > h.now and rows or nobody) do count = count + 1 end
    end
    return count >= ROWS * (TIMES[h.kind] or 1)
  end

  -- hold_of returns what a node held and returned of a cell, and where its row begins and what follows it; nothing if it has none.
  function hold_of(h, cell, node)
    rows_of(h)
    local held, begins = h.holds[cell], int(cell) .. ' ' .. node .. ' '
    local from = held and string.find(held.text, begins, 1, true)
    if not from then return end
    local l, g, after = string.match(held.text, '^(%d+) %d+ %d+ (%d+) %d+ %d+;()', from + #begins)
    return tonumber(l), tonumber(g), from, after
  end

  -- set_hold has the row of a node in a cell say what it held and returned.
  function set_hold(h, cell, node, l, g)
    local before, returned, from, after = hold_of(h, cell, node)
    local held = h.holds[cell] or {text = '', count = 0, units = 0}
    if not from then
      before, returned, from, after = 0, 0, #held.text + 1, #held.text + 1
      held.count = held.count + 1
    end
    local row = table.concat({int(cell), node, int(l), '0 0', int(g), '0 0;'}, ' ')
    held.text = string.sub(held.text, 1, from - 1) .. row .. string.sub(held.text, after)
    held.units = held.units + (l - g) - (before - returned)
    h.holds[cell] = held
  end

  -- holders returns how many nodes have a row in a cell.
  function holders(h, cell)
    rows_of(h)
    return h.holds[cell] and h.holds[cell].count or 0
  end

  -- lose_holds has the nodes hold nothing more of the cells up to one: what they held counts as used.
  function lose_holds(h, last)
    rows_of(h)
    for cell, held in pairs(h.holds) do
      if cell <= last then held.text, held.units = string.gsub(held.text, '(=%S+) %d+ (%d+ %d+ (%d+))', '%1 %3 %2'), 0 end
    end
  end

  -- marks returns what stands before the rows, as long as the loss that it is about weighs.
  local function marks(h)
    local last = math.max(h.vanished, h.whole)
    if last == 0 or weighs(h, cell_at(h, last) + 1) <= h.now then return '' end
    local unknown = {}
    if h.most then unknown[1] = '*' .. int(h.base) .. ':' .. int(h.most) end
    for peer in pairs(h.unknown) do unknown[#unknown + 1] = peer end
    table.sort(unknown)
    local names = table.concat(unknown, ',')
    if names == '' then names = '-' end
    return '!' .. int(h.vanished) .. ' ' .. int(h.whole) .. ' ' .. names .. ';'
  end

  local nothing = {text = '', count = 0, units = 0}

  -- sum_up makes h.cells what the rows come to, and returns the text of each cell's rows. Where the rows of one cell alone
  -- changed, the texts of the others are those read.
  local function sum_up(h, changed)
    local read, cells, texts, most, missing = changed == true and {} or texts_of(h), {}, {}, {}, 0
    for _, some in ipairs({h.rows, h.holds}) do
      for cell in pairs(some) do cells[cell] = true end
    end
    if changed ~= true then read[changed] = nil end
    cells = order(cells)
    h.cells, h.last = {}, -1
    for i = #cells, 1, -1 do
      local cell, text = cells[i], {}
      local held = h.holds[cell] or nothing
      local sum = {cell = cell, into = 0, out = 0, y = 0, z = 0, assigned = held.units}
      for peer, row in pairs(h.rows[cell] or nobody) do
        local out = row.l - row.g
        sum.into, sum.out = sum.into + row.b - row.r, sum.out + out
        sum.y, sum.z = sum.y + row.y, sum.z + row.z
        if out > (most[peer] or 0) then
          missing = missing + out - (most[peer] or 0)
          most[peer] = out
        end
        if not read[cell] then
          text[#text + 1] = table.concat({int(cell), peer, int(row.l), int(row.r), int(row.b), int(row.g), int(row.y), int(row.z)}, ' ') .. ';'
        end
      end
      text = read[cell] or table.concat(text) .. held.text
      if text ~= '' then
        texts[cell] = text
        sum.missing, sum.bytes, h.last = missing, #text, math.max(h.last, cell)
        h.cells[cell] = sum
      end
    end
    return texts
  end

  -- forget drops the rows that weigh no more, read or not, and says whether there were any.
  local function forget(h)
    local some = false
    for cell, sum in pairs(h.cells) do
      if weighs(h, cell) <= h.now then
        h.cells[cell], some = nil, true
        h.body = h.body + sum.bytes -- they come first
      end
    end
    for _, rows in ipairs({h.rows or nobody, h.holds or nobody}) do
      for cell in pairs(rows) do
        if weighs(h, cell) <= h.now then
          rows[cell], some = nil, true
        end
      end
    end
    return some
  end

  -- write_rows drops the rows that weigh no more, and writes the others if they changed: true, or the one cell whose did.
  function write_rows(h, changed)
    local some, texts = forget(h), nil
    if changed then
      rows_of(h)
      forget(h)
      texts = sum_up(h, changed)
    end
    local before = marks(h)
    local over = before == '' and math.max(h.vanished, h.whole) > 0 -- the loss weighs no more
    if not (changed or some or over) then return end
    local text, body = {before}, {}
    for _, cell in ipairs(order(h.cells)) do
      local c = h.cells[cell]
      text[#text + 1] = '@' .. table.concat({int(cell), int(c.into), int(c.out), int(c.y), int(c.z), int(c.missing), int(c.bytes)}, ' ')
      if c.assigned > 0 then text[#text] = text[#text] .. ' ' .. int(c.assigned) end
      text[#text] = text[#text] .. ';'
      if texts then body[#body + 1] = texts[cell] end
    end
    local front = table.concat(text)
    if texts then body = table.concat(body) else body = string.sub(h.text, h.body) end
    h.text, h.body = front .. body, #front + 1
    redis.call('HSET', h.key, 'rows', h.text)
  end

  -- add_rows appends the rows that weigh: cell, peer, lent, returned, borrowed, regained, burst lent, burst borrowed.
  function add_rows(reply, h)
    for cell, rows in pairs(rows_of(h)) do
      if weighs(h, cell) > h.now then
        for peer, row in pairs(rows) do
          for _, v in ipairs({cell, peer, row.l, row.r, row.b, row.g, row.y, row.z}) do reply[#reply + 1] = v end
        end
      end
    end
    for cell, held in pairs(h.holds) do
      if weighs(h, cell) > h.now then
        for node, l, g in string.gmatch(held.text, '(=%S+) (%d+) %d+ %d+ (%d+)') do
          for _, v in ipairs({cell, node, tonumber(l), 0, 0, tonumber(g), 0, 0}) do reply[#reply + 1] = v end
        end
      end
    end
  end
end
