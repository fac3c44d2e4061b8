-- seen returns node and time of each node that this store has answered since its generation began at a time, or the error of
-- a user who may not read names (HKEYS), or CROWDED if there are more than MAX_NODES.
local MAX_NODES = 256
local function seen(begun)
  local names, all = redis.pcall('HKEYS', KEYS[1]), {}
  if names.err then return nil, names end
  for _, field in ipairs(names) do
    if string.sub(field, 1, 5) == 'seen:' then
      local at = redis.call('HGET', KEYS[1], field)
      if tonumber(at) > begun then
        if #all >= 2 * MAX_NODES then return nil, {9} end
        all[#all + 1], all[#all + 2] = string.sub(field, 6), at
      end
    end
  end
  return all
end
