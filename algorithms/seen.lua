-- seen returns each node that this store has answered after a time, with that time, the latest first; or the error of a user
-- who may not read names (HKEYS).
local MAX_NODES, KEPT = 256, 1024
local function seen(after)
  local names, all = redis.pcall('HKEYS', KEYS[1]), {}
  if names.err then return nil, names end
  for _, field in ipairs(names) do
    if string.sub(field, 1, 5) == 'seen:' then
      local at = redis.call('HGET', KEYS[1], field)
      if tonumber(at) > after then all[#all + 1] = {string.sub(field, 6), at} end
    end
  end
  table.sort(all, function(a, b)
    if a[2] ~= b[2] then return tonumber(a[2]) > tonumber(b[2]) end
    return a[1] < b[1]
  end)
  return all
end
