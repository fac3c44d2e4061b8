-- leaky_bucket, as a queue: requests are served one after the other at S[k] a window, and at most C units wait or are
-- in service. The level is the backlog, work not done, as a numerator over the ticks of a window; the mark is the tick
-- before which no further turn begins. A share may be lowered from the mark on only, for turns are promised; and no
-- request waits longer than a full queue takes at the entitlement.
kinds.leaky_bucket = function()
  local Queue = rate_class()
  Queue.room_burst = zero

  function Queue.open(h)
    local backlog, at, next_turn, stood, before = Queue.read(h, ceil_div)
    local s = setmetatable({h = h, level = backlog, at = at, mark = next_turn, stood = stood, dirty = false,
      turn = false}, Queue)
    if not at then
      s.level, s.at, s.mark = 0, h.this_tick, 0
      if h.lost_at > 0 then -- what was promised before the loss is not known: it begins full
        s.level, s.at = h.full, floor_div(closed(h), h.tick)
        s.mark = math.max(s:after(s.at, s.level), s.at)
        s.unknown = h.burst == 0 -- nor how much there may be while the region has no queue: nothing is charged
      end
    end
    s:catch_up(before, Queue.drain)
    s.dirty = before and s.level > 0 -- so that what comes counts at the entitlement of now
    return s
  end

  -- drain takes what was done up to now off the backlog.
  function Queue:drain()
    local h = self.h
    local from, now, one_rate = self.at, h.this_tick, h.last < 0 and h.lost_at == 0
    if from < now then
      local backlog = self.level
      while from < now do
        local to, share = now, h.entitlement
        if not one_rate then
          local _, ends
          _, ends, share = self:stretch(from)
          if ends and ends < now then to = ends end
        end
        backlog = backlog - share * (to - from) -- which may not be exact only where it is below 0
        if backlog < 0 then backlog = 0 end
        from = to
      end
      self.level, self.at = backlog, now
    end
    if self.level == 0 then self.at = h.next_tick end
  end

  -- turn_of returns the tick at which the next turn begins, -1 if none ever does; turn keeps it until that changes.
  function Queue:turn_of()
    local turn = self.turn
    if turn then return turn end
    turn = self.h.this_tick
    if self.level > 0 then turn = self:after(self.at, self.level) end
    if turn >= 0 and turn < self.mark then turn = self.mark end
    self.turn = turn
    return turn
  end

  -- used returns the backlog in units, rounded up.
  function Queue:used()
    local ticks = self.h.ticks
    local level = self.level + ticks - 1
    return (level - level % ticks) / ticks
  end

  function Queue:state()
    local share, next_share = self:shares()
    return share, next_share, self:used(), 0, self:reset_after()
  end

  -- reset_after returns when the backlog is done and all promised turns are over: who comes then is served at once.
  function Queue:reset_after()
    local turn = self:turn_of()
    if turn < 0 then return self:forgotten() end
    return self:wait(turn)
  end

  function Queue:free()
    local free = self.h.burst - self:used()
    return free > 0 and free or 0
  end

  function Queue:fits(cost)
    local h = self.h
    return (h.lost_at == 0 or is_open(h, h.cell)) and cost <= h.burst - self:used() and
      self:turn_of() - h.this_tick <= h.longest and self:after(self.at, self.level + cost * h.ticks) >= 0
  end

  -- retry waits until enough of the backlog is done, and the turn is near enough.
  function Queue:retry(cost)
    local h = self.h
    if cost > h.burst or self:after(self.at, self.level + cost * h.ticks) < 0 then return -1 end
    local room = self:after(self.at, math.max(self.level - (h.burst - cost) * h.ticks, 0))
    return self:wait(math.max(room, self:turn_of() - h.longest, ceil_div(closed(h), h.tick)))
  end

  function Queue:take(cost)
    local turn, work = self:turn_of(), cost * self.h.ticks
    local waits = turn == self.mark
    local mark = self:after(math.max(turn, self.at), work)
    if not waits then mark = math.max(mark - 1, turn) end -- the backlog alone keeps the pace, to the last remainder
    self.level, self.mark, self.turn, self.dirty = self.level + work, mark, false, true
    return self:wait(turn)
  end

  function Queue:room(cell, _, kept)
    local h = self.h
    if self.mark > math.max(h.this_tick, cell * h.cell_ticks) then return 0 end
    return self:share(cell) - kept
  end

  function Queue:spare(kept) return self:room(self.h.cell, nil, kept) end

  function Queue:settle() self.dirty = true end

  function Queue:refund() return 0, TURN_PROMISED end

  function Queue:book(_, units)
    if self.unknown then return false end
    self.level, self.turn, self.dirty = self.level + units * self.h.ticks, false, true
    return true
  end

  function Queue:reset() self.level, self.at, self.mark, self.turn, self.dirty = 0, self.h.next_tick, 0, false, true end

  return Queue
end
