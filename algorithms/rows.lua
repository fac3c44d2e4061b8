-- The rows of a bucket, as they stand in the store (see ledger.lua).

-- What only buckets with rows need is made when the first of a call comes: most calls have none, and to make a function
-- takes as long as to use it.
local read_sums, rows_of, row_of, is_full, order, write_rows, add_rows, cell_at
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
    h.text, h.cells, h.rows, h.last = text, {}, nil, -1
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

  -- rows_of reads the rows.
  function rows_of(h)
    if h.rows then return h.rows end
    h.rows = {}
    if not h.text then return h.rows end
    for cell, peer, l, r, b, g, y, z in string.gmatch(string.sub(h.text, h.body),
      '(%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+);') do
      cell = tonumber(cell)
      h.rows[cell] = h.rows[cell] or {}
      h.rows[cell][peer] = {l = tonumber(l), r = tonumber(r), b = tonumber(b), g = tonumber(g), y = tonumber(y), z = tonumber(z)}
    end
    return h.rows
  end

  function row_of(h, cell, peer)
    local rows = rows_of(h)[cell]
    return rows and rows[peer] or {l = 0, r = 0, b = 0, g = 0, y = 0, z = 0}
  end

  -- is_full says whether there are so many rows that there is room for none more, of a peer that has none in the cell. Rows that
  -- weigh no more are dropped when the next is written.
  local TIMES, ROWS = {sliding_window_counter = 2, sliding_window_log = 4, leaky_bucket = 2}, 24
  function is_full(h, cell, peer)
    local count = 0
    for k, rows in pairs(rows_of(h)) do
      if k == cell and rows[peer] then return false end
      for _ in pairs(weighs(h, k) > h.now and rows or nobody) do count = count + 1 end
    end
    return count >= ROWS * (TIMES[h.kind] or 1)
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

  -- order returns the cells of a table by cell, from the first on.
  function order(cells)
    local list = {}
    for cell in pairs(cells) do list[#list + 1] = cell end
    table.sort(list)
    return list
  end

  -- sum_up makes h.cells what the rows come to, and returns the text of each cell's rows. Where the rows of one cell alone
  -- changed, the texts of the others are those read.
  local function sum_up(h, changed)
    local texts, most, missing, read, at = {}, {}, 0, {}, h.body
    for _, cell in ipairs(changed == true and nobody or order(h.cells)) do
      read[cell] = string.sub(h.text, at, at + h.cells[cell].bytes - 1)
      at = at + h.cells[cell].bytes
    end
    if changed ~= true then read[changed] = nil end
    h.cells, h.last = {}, -1
    local cells = order(h.rows)
    for i = #cells, 1, -1 do
      local cell, text = cells[i], {}
      local sum = {cell = cell, into = 0, out = 0, y = 0, z = 0, assigned = 0}
      for peer, row in pairs(h.rows[cell]) do
        local out = row.l - row.g
        if is_assigned(peer) then sum.assigned, out = sum.assigned + out, 0 end
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
      if read[cell] or #text > 0 then
        texts[cell] = read[cell] or table.concat(text)
        sum.missing, sum.bytes, h.last = missing, #texts[cell], math.max(h.last, cell)
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
    for cell in pairs(h.rows or nobody) do
      if weighs(h, cell) <= h.now then
        h.rows[cell], some = nil, true
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
  end
end
