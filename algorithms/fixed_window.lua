-- fixed_window: admit when used[k] + cost <= S[k]. Fields: c the cell that u counts, u units used in it.
kinds.fixed_window = {
  open = function(key, now, lost_at, window, entitlement)
    local cell = cell_at(now, window)
    local v = redis.call('HMGET', key, 'c', 'u', 'n' .. int(cell), 'n' .. int(cell + 1))
    local s = {key = key, now = now, window = window, entitlement = entitlement, cell = cell, taken = 0}
    s.current = v[1] == int(cell)
    s.used = s.current and tonumber(v[2]) or 0
    s.share = entitlement + tonumber(v[3] or 0)
    s.next_share = entitlement + tonumber(v[4] or 0)
    if lost(cell, window, lost_at) then s.share = 0 end
    if lost(cell + 1, window, lost_at) then s.next_share = 0 end
    return s
  end,

  fits = function(s, cost)
    return s.used + cost <= s.share
  end,

  -- retry returns after how many microseconds the cost fits if nothing else happens, or -1 if it never does
  -- on the entitlement alone.
  retry = function(s, cost)
    local next_cell = (s.cell + 1) * s.window - s.now
    if cost <= s.next_share then return next_cell end
    if cost <= s.entitlement then return next_cell + s.window end
    return -1
  end,

  take = function(s, cost)
    s.used = s.used + cost
    s.taken = s.taken + cost
  end,

  remaining = function(s)
    return math.max(s.share - s.used, 0)
  end,

  -- spare returns the rights of a cell, this one or the next, that nothing has used.
  spare = function(s, cell)
    if cell == s.cell then return s.share - s.used end
    return s.next_share
  end,

  save = function(s)
    if s.taken == 0 then return end
    redis.call('HSET', s.key, 'c', int(s.cell), 'u', int(s.used))
    if not s.current then keep(s.key, s.cell, s.window, s.now) end
  end
}
