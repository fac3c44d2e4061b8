-- rights: does once what quotad's scripts do, on keys of its own, and answers with what was refused: the command and
-- the error of each. KEYS: token, a text, a hash.
local refused = {}
local function try(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    refused[#refused + 1] = command
    refused[#refused + 1] = reply.err
  end
end
try('time')
try('hmget', KEYS[1], 'generation')
try('set', KEYS[2], '1', 'PX', '1000')
try('get', KEYS[2])
try('hset', KEYS[3], 'f', '1')
try('pexpireat', KEYS[3], '1')
try('hget', KEYS[3], 'f')
try('hdel', KEYS[3], 'f')
try('hkeys', KEYS[3])
try('del', KEYS[2])
try('del', KEYS[3])
return refused
