-- Admits a request by the limits of all its scopes, or counts it against none.
-- KEYS: per scope, the window of POST requests and the set of requests in flight.
-- ARGV: whether it is a POST (1), its member, the lease in ms; per scope rpm and max_concurrency (0 for no limit), and
-- POSTs that its node admitted while it could not count them here.
-- Returns the number of the scope that rejects it (0: none), which limit (1: concurrency, 2: rpm), ms to wait; then per scope
-- POSTs of the last minute and ms until one more may be made.
local is_post, member, lease = ARGV[1] == '1', ARGV[2], tonumber(ARGV[3])
local scopes = #KEYS / 2
local reply = { 0, 0, 0 }
local sums = {}

for scope = 1, scopes do
  local posts, in_flight = KEYS[2 * scope - 1], KEYS[2 * scope]
  local rpm, max_concurrency = tonumber(ARGV[3 * scope + 1]), tonumber(ARGV[3 * scope + 2])
  if rpm > 0 then
    window_add(posts, tonumber(ARGV[3 * scope + 3]))
  end
  sums[scope] = rpm > 0 and window_sum(posts) or 0
  if reply[1] == 0 and max_concurrency > 0 then
    remove_expired(in_flight, in_flight)
    if redis.call('ZCARD', in_flight) >= max_concurrency then
      reply = { scope, 1, 1000 }
    end
  end
  if reply[1] == 0 and rpm > 0 and is_post and sums[scope] >= rpm then
    reply = { scope, 2, time_until_at_most(posts, sums[scope], rpm - 1) }
  end
end

for scope = 1, scopes do
  local posts, in_flight = KEYS[2 * scope - 1], KEYS[2 * scope]
  local rpm, max_concurrency = tonumber(ARGV[3 * scope + 1]), tonumber(ARGV[3 * scope + 2])
  if reply[1] == 0 then
    if max_concurrency > 0 then
      add_member(in_flight, in_flight, member, lease)
    end
    if rpm > 0 and is_post then
      window_add(posts, 1)
      sums[scope] = sums[scope] + 1
    end
  end
  reply[2 * scope + 2] = sums[scope]
  reply[2 * scope + 3] = rpm > 0 and time_until_at_most(posts, sums[scope], math.max(0, sums[scope] - 1)) or 0
end
return reply
