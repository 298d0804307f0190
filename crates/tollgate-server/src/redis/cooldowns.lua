-- The cooldowns that hold now, as parts of a message; those that have ended are removed. KEYS: their hash.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local message = { '' }
local all = redis.call('HGETALL', KEYS[1])
for index = 1, #all, 2 do
  local name = all[index]
  local last, requested, user = string.match(all[index + 1], '^(%d+) (%d) (.*)$')
  local left = tonumber(last) - now
  if left <= 0 then
    redis.call('HDEL', KEYS[1], name)
  else
    for _, part in ipairs({ 'cooldown', name, string.format('%.0f', left), requested, user }) do
      message[#message + 1] = part
    end
  end
end
return cjson.encode(message)
