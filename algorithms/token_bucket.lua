-- token_bucket: admit when there are as many tokens as the cost. The level (a numerator over the ticks of a window) is
-- settled cell by cell, each with that cell's own share and capacity. The mark is the tick at which refill was last
-- lost to a full bucket.
kinds.token_bucket = function(h)
  local rows = redis.call('HGET', h.key, 'rows')
  read_rows(h, rows)
  h.absent = not rows
  local ticks, r = h.ticks, rate_of(h)
  local dirty, s = false, {}

  local function capacity(cell)
    local sum = h.cells[cell]
    return sum and h.burst + sum.z - sum.y or h.burst
  end

  local level, at, mark = r.read(floor_div)
  local since = at ~= nil -- the level follows from what was written before
  -- make_full: from now on refill counts, which is not before the next tick if this one has begun.
  local function make_full(full) level, at, mark = full, ceil_div(h.now, h.tick), r.tick end
  local function clip(full)
    if level > full then make_full(full) end
  end
  if not since then
    if h.lost_at > 0 then -- what it held before the loss is not known: it begins empty
      at = floor_div(closed(h), h.tick)
      level, mark = 0, at
    else
      make_full(capacity(h.cell) * ticks)
    end
  end
  local from = at
  at = math.max(at, r.tick)
  while from < r.tick do
    local cell, to, share = r.stretch(from)
    to = math.min(to or r.tick, r.tick)
    local span, full = to - from, capacity(cell) * ticks
    if share > 0 then -- a longer span is full anyhow, and the product might not be exact
      level = level + share * math.min(span, ceil_div(math.max(full - level, 0), share) + 1)
    end
    if level > full then level, mark = full, to end
    from = to
  end
  local full = capacity(h.cell) * ticks
  clip(full)
  if level == full then at = math.max(at, ceil_div(h.now, h.tick)) end -- until now it was full

  local function free() return floor_div(level, ticks) end -- below zero after a booking

  function s.free() return math.max(free(), 0) end

  function s.state() return r.share(h.cell), r.share(h.cell + 1), capacity(h.cell) - free(), 0 end

  function s.fits(cost) return is_open(h, h.cell) and cost <= free() end

  -- retry follows the level until it is as high as the cost.
  function s.retry(cost)
    local have, from = level, at
    while true do
      local cell, to, share = r.stretch(from)
      local full = capacity(cell)
      have = math.min(have, full * ticks)
      if cost <= full and is_open(h, cell) then
        local lack = math.max(cost * ticks - have, 0)
        local found = from + ceil_div(lack, math.max(share, 1))
        if (lack == 0 or share > 0) and (not to or found < to) then return r.wait(found) end
      end
      if not to then return -1 end
      have, from = math.min(have + share * (to - from), full * ticks), to
    end
  end

  function s.take(cost)
    level, dirty = level - cost * ticks, true
    return 0
  end

  function s.spare(kept) return r.share(h.cell) - kept end

  function s.room(cell, _, kept) return r.share(cell) - kept end

  function s.room_burst(kept)
    if not is_open(h, h.cell) then return 0 end
    return free() - kept
  end

  function s.settle(tokens) level, dirty = level + tokens * ticks, true end

  function s.refund(time, _, units)
    if not since or floor_div(time, h.tick) < mark or h.now >= time + math.min(fill(h), REFUNDABLE) then return 0, NO_LONGER_WEIGHS end
    local before = free()
    level, dirty = level + units * ticks, true
    clip(capacity(h.cell) * ticks)
    return math.min(units, free() - before), NOT_REFUSED
  end

  function s.book(_, units)
    s.take(units)
    return true
  end

  function s.reset()
    make_full(capacity(h.cell) * ticks)
    dirty = true
  end

  function s.save()
    if dirty then r.write(level, at, mark) end
  end

  return s
end
