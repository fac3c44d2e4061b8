-- fixed_window: admit when used[k] + cost <= S[k]. Fields: c the cell that u counts, u units used in it.
kinds.fixed_window = function(h)
  local v = redis.call('HMGET', h.key, 'rows', 'c', 'u')
  read_rows(h, v[1])
  h.absent = not v[1] and not v[2]
  h.kept = math.max(h.kept, tonumber(v[2] or -1))
  local current = v[2] == int(h.cell)
  local used, dirty = current and tonumber(v[3]) or 0, false
  local hidden = untold_until(h) > h.now and untold(h) or 0
  used = used + hidden
  local share = rights(h, h.cell)
  local s = {room_burst = zero, settle = zero}

  function s.state() return share, rights(h, h.cell + 1), used, 0 end

  function s.free() return math.max(share - used, 0) end

  function s.fits(cost) return cost <= share - used end

  function s.retry(cost)
    local cell = h.cell + 1
    while true do
      if is_open(h, cell) then
        if cost <= rights(h, cell) then return cell * h.length - h.now end
        if cell > h.last then return -1 end
      end
      cell = cell + 1
    end
  end

  function s.take(cost)
    used, dirty = used + cost, true
    return 0
  end

  function s.spare(kept) return share - used - kept end

  function s.room(cell, _, kept)
    if cell == h.cell then return s.spare(kept) end
    return rights(h, cell) - kept
  end

  function s.refund(_, cell, units)
    if cell ~= h.cell then return 0, NO_LONGER_WEIGHS end
    units = math.min(units, used - hidden)
    used, dirty = used - units, true
    return units, NOT_REFUSED
  end

  function s.book(cell, units)
    if cell == h.cell then used, dirty = used + units, true end
    return cell <= h.cell
  end

  function s.restore(cell, units)
    if cell == h.cell then used, dirty = math.max(used, units), true end
  end

  function s.known() return used - hidden end

  function s.reset() used, hidden, dirty = 0, 0, true end

  function s.save()
    if not dirty then return end
    redis.call('HSET', h.key, 'c', int(h.cell), 'u', int(used - hidden))
    if not current then keep(h) end
  end

  return s
end
