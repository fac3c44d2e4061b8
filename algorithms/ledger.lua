-- The ledger of one bucket, in the bucket's hash. For cell k and peer region j, all cumulative, in units:
--   l<k>:<j> lent to j         R[self->j][k], written here
--   r<k>:<j> returned to j     Q[self->j][k], written here
--   b<k>:<j> borrowed from j   R[j->self][k], as heard from j
--   g<k>:<j> regained from j   Q[j->self][k], as heard from j
--   n<k>     the net of all of these: rights of the cell = entitlement + n<k>
local ROWS = {l = -1, r = -1, b = 1, g = 1} -- the sign of each row in the net

-- cell_at returns the number of the cell of length window that holds time t; t - t % window is an exact multiple.
local function cell_at(t, window)
  return (t - t % window) / window
end

-- lost says whether a cell's ledger may have been lost: the store lost its data at lost_at, and what it had
-- then concerned the cell of that moment and the one after. Such a cell counts as fully lent and fully used.
local function lost(cell, window, lost_at)
  return lost_at > 0 and cell <= cell_at(lost_at, window) + 1
end

-- keep bounds the hash: rows of finished cells go, and the hash outlives its last useful moment, the end of
-- the cell after this one, by the largest clock step (one hour).
local function keep(key, cell, window, now)
  local finished = {}
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local k = string.match(field, '^[lrbgn](%d+)')
    if k and tonumber(k) < cell then
      finished[#finished + 1] = field
    end
  end
  for i = 1, #finished do
    redis.call('HDEL', key, finished[i])
  end
  local left = (cell + 2) * window - now
  redis.call('PEXPIRE', key, int((left - left % 1000) / 1000 + 1 + 3600000))
end

-- rows returns the rows of one cell by peer, as {l=, r=, b=, g=}, and the net lent out: sum of l - g.
local function rows(key, cell)
  local all, out = {}, 0
  local flat = redis.call('HGETALL', key)
  local prefix = int(cell)
  for i = 1, #flat, 2 do
    local row, k, peer = string.match(flat[i], '^([lrbg])(%d+):(.*)$')
    if k == prefix then
      local units = tonumber(flat[i + 1])
      all[peer] = all[peer] or {l = 0, r = 0, b = 0, g = 0}
      all[peer][row] = units
      if row == 'l' then out = out + units elseif row == 'g' then out = out - units end
    end
  end
  return all, out
end

-- raise lifts one row to a higher value and moves the cell's net with it.
local function raise(key, row, cell, peer, from, to)
  redis.call('HSET', key, row .. int(cell) .. ':' .. peer, int(to))
  local net = tonumber(redis.call('HGET', key, 'n' .. int(cell)) or 0)
  redis.call('HSET', key, 'n' .. int(cell), int(net + ROWS[row] * (to - from)))
end

local kinds = {} -- one entry for each algorithm, by its name in the policy document
