-- beat: has the store show its time, and hold it by the mark, also where nobody asks it for anything else.
-- KEYS: token. ARGV: guard. Reply: OK, now.
local now, status = enter()
if not now then return {status} end
return {OK, now}
