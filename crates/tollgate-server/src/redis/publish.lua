-- Publishes a message of a node to the others, and keeps the cooldowns for nodes that subscribe later.
-- KEYS: the hash of cooldowns. ARGV: the channel of messages, the node, the number of further parts of the message and these; then
-- per cooldown its name, how long it lasts in ms (0: it is lifted), whether the provider requested it (1), and the user whose
-- requests are its evidence (empty for all users).
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local cooldowns = KEYS[1]
local parts = tonumber(ARGV[3])
local message = { ARGV[2] }
for index = 4, parts + 3 do
  message[#message + 1] = ARGV[index]
end

local longest = 0
for index = parts + 4, #ARGV, 4 do
  local name, left, requested, user = ARGV[index], tonumber(ARGV[index + 1]), ARGV[index + 2], ARGV[index + 3]
  if left <= 0 then
    redis.call('HDEL', cooldowns, name)
    message[#message + 1] = 'lift'
    message[#message + 1] = name
  else
    -- What two users' requests say holds for all, whichever nodes they were sent to.
    local known = redis.call('HGET', cooldowns, name)
    if known then
      local known_until, known_user = string.match(known, '^(%d+) %d (.*)$')
      if tonumber(known_until) > now and known_user ~= user then
        user = ''
      end
    end
    redis.call('HSET', cooldowns, name, string.format('%.0f %s %s', now + left, requested, user))
    longest = math.max(longest, left)
    for _, part in ipairs({ 'cooldown', name, ARGV[index + 1], requested, user }) do
      message[#message + 1] = part
    end
  end
end
if longest > 0 then
  redis.call('PEXPIRE', cooldowns, math.max(longest, redis.call('PTTL', cooldowns)))
end
redis.call('PUBLISH', ARGV[1], cjson.encode(message))
return 0
