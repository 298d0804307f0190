-- Sets how many of a channel's calls a node may make at the same time: what all nodes may make together never adds up to more than the
-- limit, but for calls that run anyway.
-- KEYS: the hash of permits by node, the set of nodes by the time when their permits expire, the set of nodes that got less than
-- their share by the time until which they want it.
-- ARGV: the node, the limit, its calls in flight, the permits that it wants, its share, what it keeps of it if another node wants
-- its own, the lease in ms, how long it wants its share in ms.
-- Returns its permits, and whether it must leave those beyond what it keeps to others as its calls end (1).
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local permits, nodes, wanting = KEYS[1], KEYS[2], KEYS[3]
local node = ARGV[1]
local limit, in_flight, wanted, share = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local kept, lease, wants_for = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

for _, dead in ipairs(redis.call('ZRANGEBYSCORE', nodes, '-inf', now)) do
  redis.call('HDEL', permits, dead)
end
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', now)
redis.call('ZREMRANGEBYSCORE', wanting, '-inf', now)

local own, others = 0, 0
local all = redis.call('HGETALL', permits)
for index = 1, #all, 2 do
  if all[index] == node then
    own = tonumber(all[index + 1])
  else
    others = others + tonumber(all[index + 1])
  end
end

local others_want = redis.call('ZCARD', wanting) > (redis.call('ZSCORE', wanting, node) and 1 or 0)
local yields = others_want and own >= share
if yields then
  wanted = math.min(wanted, kept)
elseif others_want then
  wanted = math.min(wanted, share)
end
local granted = math.max(in_flight, math.min(wanted, limit - others))

if granted > 0 then
  redis.call('HSET', permits, node, granted)
  redis.call('ZADD', nodes, now + lease, node)
  redis.call('PEXPIRE', permits, 2 * lease)
  redis.call('PEXPIRE', nodes, 2 * lease)
else
  redis.call('HDEL', permits, node)
  redis.call('ZREM', nodes, node)
end
if granted < math.min(tonumber(ARGV[4]), share) then
  redis.call('ZADD', wanting, now + wants_for, node)
  redis.call('PEXPIRE', wanting, 2 * wants_for)
else
  redis.call('ZREM', wanting, node)
end
return { granted, yields and 1 or 0 }
