-- What token_bucket and leaky_bucket share: rights that are a rate, S[k] units a window in cell k, and time in ticks.
-- Work is units times the ticks of a window, so that a tick at S does exactly S, and no remainder is ever lost.
-- Fields of both: v the level, a the tick it is of, m a mark, t the length of a tick, w the cell of the last keep.
local REFUNDABLE = 86400000000 -- us for which at most a charge of a bucket can be refunded

local function rate_of(h)
  local r = {tick = floor_div(h.now, h.tick), cells = floor_div(h.length, h.tick), last = h.last}
  if h.lost_at > 0 then r.last = math.max(r.last, floor_div(h.lost_at, h.length) + 1) end

  local shares = {} -- by cell
  function r.share(cell)
    shares[cell] = shares[cell] or math.max(rights(h, cell), 0)
    return shares[cell]
  end

  -- stretch returns the cell of a tick, where it ends (nil: it and all after it have one rate) and its share.
  function r.stretch(from)
    local cell = floor_div(from, r.cells)
    local to = nil
    if cell <= r.last then to = (cell + 1) * r.cells end
    return cell, to, r.share(cell)
  end

  -- after returns the tick at which the work is done that begins at tick from, or -1 if it never is.
  function r.after(from, work)
    while work > 0 do
      local _, to, share = r.stretch(from)
      if share > 0 and (not to or work <= share * (to - from)) then return from + ceil_div(work, share) end
      if not to then return -1 end
      work, from = work - share * (to - from), to
    end
    return from
  end

  -- wait returns after how many us a tick begins.
  function r.wait(tick) return math.max(tick * h.tick - h.now, 0) end

  -- read returns level, tick and mark as they were last written, nil if that says nothing. Another limit may have
  -- changed the length of a tick: each is then converted, and rounded against the caller by the function given.
  function r.read(round)
    local v = redis.call('HMGET', h.key, 'v', 'a', 'm', 't', 'w')
    h.absent = h.absent and not v[2]
    h.kept = math.max(h.kept, tonumber(v[5] or -1))
    if not v[2] then return nil end
    local level, at, mark, tick = tonumber(v[1]), tonumber(v[2]), tonumber(v[3]), tonumber(v[4])
    if tick < h.tick then
      level, at, mark = round(level, h.tick / tick), ceil_div(at, h.tick / tick), ceil_div(mark, h.tick / tick)
    elseif tick > h.tick then
      local finer = tick / h.tick
      level, at, mark = math.min(level, floor_div(MAX, finer)) * finer, at * finer, mark * finer
    end
    if at * h.tick < h.lost_at then return nil end
    return level, at, mark
  end

  function r.write(level, at, mark)
    redis.call('HSET', h.key, 'v', int(level), 'a', int(at), 'm', int(mark), 't', int(h.tick), 'w', int(h.cell))
    if h.kept ~= h.cell then keep(h) end
  end

  return r
end
