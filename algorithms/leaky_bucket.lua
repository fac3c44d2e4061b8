-- leaky_bucket, as a queue: requests are served one after the other at S[k] a window, and at most C units wait or are
-- in service. The level is the backlog, work not done, as a numerator over the ticks of a window; the mark is the tick
-- before which no further turn begins. A share may be lowered from the mark on only, for turns are promised; and no
-- request waits longer than a full queue takes at the entitlement.
kinds.leaky_bucket = function(h)
  local rows = redis.call('HGET', h.key, 'rows')
  read_rows(h, rows)
  h.absent = not rows
  local ticks, r = h.ticks, rate_of(h)
  local dirty, s = false, {room_burst = zero}
  local backlog, at, next_turn = r.read(ceil_div)
  if not at then
    backlog, at, next_turn = 0, r.tick, 0
    if h.lost_at > 0 then -- what was promised before the loss is not known: it begins full
      backlog, at = h.burst * ticks, floor_div(closed(h), h.tick)
      next_turn = math.max(r.after(at, backlog), at)
    end
  end
  local from = at
  at = math.max(at, r.tick)
  while from < r.tick do
    local _, to, share = r.stretch(from)
    to = math.min(to or r.tick, r.tick)
    if share > 0 and to - from > floor_div(backlog, share) then
      backlog = 0
    else
      backlog = backlog - share * (to - from)
    end
    from = to
  end
  if backlog == 0 then at = ceil_div(h.now, h.tick) end

  -- turn_of returns the tick at which the next turn begins, -1 if none ever does.
  local function turn_of()
    local done = r.tick
    if backlog > 0 then done = r.after(at, backlog) end
    if done < 0 then return -1 end
    return math.max(done, next_turn)
  end
  local longest = floor_div(fill(h), h.tick)

  local function free() return h.burst - ceil_div(backlog, ticks) end

  function s.state() return r.share(h.cell), r.share(h.cell + 1), ceil_div(backlog, ticks), 0 end

  function s.free() return math.max(free(), 0) end

  function s.fits(cost)
    return is_open(h, h.cell) and cost <= free() and turn_of() - r.tick <= longest and
      r.after(at, backlog + cost * ticks) >= 0
  end

  -- retry waits until enough of the backlog is done, and the turn is near enough.
  function s.retry(cost)
    if cost > h.burst or r.after(at, backlog + cost * ticks) < 0 then return -1 end
    local room = r.after(at, math.max(backlog - (h.burst - cost) * ticks, 0))
    return r.wait(math.max(room, turn_of() - longest, ceil_div(closed(h), h.tick)))
  end

  function s.take(cost)
    local turn = turn_of()
    local waits = turn == next_turn
    next_turn = r.after(math.max(turn, at), cost * ticks)
    if not waits then next_turn = math.max(next_turn - 1, turn) end -- the backlog alone keeps the pace, to the last remainder
    backlog, dirty = backlog + cost * ticks, true
    return r.wait(turn)
  end

  function s.room(cell, _, kept)
    if next_turn > math.max(r.tick, cell * r.cells) then return 0 end
    return r.share(cell) - kept
  end

  function s.spare(kept) return s.room(h.cell, nil, kept) end

  function s.settle() dirty = true end

  function s.refund() return 0, TURN_PROMISED end

  function s.book(_, units)
    backlog, dirty = backlog + units * ticks, true
    return true
  end

  function s.reset() backlog, at, next_turn, dirty = 0, ceil_div(h.now, h.tick), 0, true end

  function s.save()
    if dirty then r.write(backlog, at, next_turn) end
  end

  return s
end
