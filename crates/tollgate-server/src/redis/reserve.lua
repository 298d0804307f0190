-- Counts a request's estimated tokens, or rejects it if a limit is reached without them.
-- KEYS: per scope, the window of tokens, the set of reservations and their sum.
-- ARGV: the member, the lease in ms; per scope tpm.
-- Returns the number of the scope that rejects it (0: none) and ms to wait.
local member, lease = ARGV[1], tonumber(ARGV[2])

for scope = 1, #KEYS / 3 do
  local tokens, set, sum_key = KEYS[3 * scope - 2], KEYS[3 * scope - 1], KEYS[3 * scope]
  local tpm = tonumber(ARGV[scope + 2])
  remove_expired(set, sum_key)
  local used = window_sum(tokens)
  local reserved = math.max(0, tonumber(redis.call('GET', sum_key) or 0))
  if used + reserved >= tpm then
    -- If the estimates alone reach the limit, a request must end first, which may happen at any moment.
    if reserved >= tpm then
      return { scope, 1000 }
    end
    return { scope, time_until_at_most(tokens, used, tpm - reserved - 1) }
  end
end

for scope = 1, #KEYS / 3 do
  add_member(KEYS[3 * scope - 1], KEYS[3 * scope], member, lease)
end
return { 0, 0 }
