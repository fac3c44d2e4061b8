-- What token_bucket and leaky_bucket share: rights that are a rate, S[k] units a window in cell k, and time in ticks.
-- Work is units times the ticks of a window, so that a tick at S does exactly S, and no remainder is ever lost.
-- Fields of both: v the level, a the tick it is of, m a mark, w the cell of the last keep.
local function rate_of(h)
  local r = {tick = floor_div(h.now, h.tick), cells = floor_div(h.length, h.tick), last = h.last}
  if h.lost_at > 0 then r.last = math.max(r.last, floor_div(h.lost_at, h.length) + 1) end

  function r.share(cell) return math.max(rights(h, cell), 0) end

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

  -- read returns level, tick and mark as they were last written, nil if that says nothing.
  function r.read()
    local v = redis.call('HMGET', h.key, 'v', 'a', 'm')
    if v[2] and tonumber(v[2]) * h.tick >= h.lost_at then
      return tonumber(v[1]), tonumber(v[2]), tonumber(v[3])
    end
  end

  function r.write(level, at, mark)
    local written = tonumber(redis.call('HGET', h.key, 'w') or -1)
    redis.call('HSET', h.key, 'v', int(level), 'a', int(at), 'm', int(mark), 'w', int(h.cell))
    if written ~= h.cell then keep(h) end
  end

  return r
end
