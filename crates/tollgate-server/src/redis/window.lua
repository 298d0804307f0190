-- What every script of rate limits begins with. Times are the server's, in milliseconds.
local MINUTE, MAX_EXACT_ENTRIES, MERGE_WITHIN = 60000, 1024, 50
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A sliding window is a list: the sum, then its entries, oldest first, each "FIRST_AT LAST_AT AMOUNT".
local function format_entry(first_at, last_at, amount)
  return string.format('%.0f %.0f %.0f', first_at, last_at, amount)
end

local function parse_entry(entry)
  local first_at, last_at, amount = string.match(entry, '^(%d+) (%d+) (%d+)$')
  return tonumber(first_at), tonumber(last_at), tonumber(amount)
end

-- The sum of the minute that ends now. Entries leave the window by their latest time.
local function window_sum(key)
  local sum = tonumber(redis.call('LINDEX', key, 0) or 0)
  while true do
    local oldest = redis.call('LINDEX', key, 1)
    if not oldest then
      return sum
    end
    local _, last_at, amount = parse_entry(oldest)
    if last_at > now - MINUTE then
      return sum
    end
    sum = math.max(0, sum - amount)
    -- The list moves up by one, and its new head, which was that entry, becomes the sum.
    redis.call('LPOP', key)
    redis.call('LSET', key, 0, string.format('%.0f', sum))
  end
end

-- Beyond MAX_EXACT_ENTRIES, amounts within MERGE_WITHIN of each other share one entry under its latest time.
local function window_add(key, amount)
  if amount <= 0 then
    return
  end
  local sum = window_sum(key)
  local length = redis.call('LLEN', key)
  if length == 0 then
    redis.call('RPUSH', key, '0')
  end
  local is_merged = false
  if length > MAX_EXACT_ENTRIES then
    local first_at, last_at, newest = parse_entry(redis.call('LINDEX', key, -1))
    if now < first_at + MERGE_WITHIN then
      redis.call('LSET', key, -1, format_entry(first_at, math.max(last_at, now), newest + amount))
      is_merged = true
    end
  end
  if not is_merged then
    redis.call('RPUSH', key, format_entry(now, now, amount))
  end
  redis.call('LSET', key, 0, string.format('%.0f', sum + amount))
  redis.call('PEXPIRE', key, MINUTE + 1000)
end

-- How long it takes until at most `allowed` of `sum` is left, if nothing is counted meanwhile.
local function time_until_at_most(key, sum, allowed)
  local index = 1
  while sum > allowed do
    local entry = redis.call('LINDEX', key, index)
    if not entry then
      return 0
    end
    local _, last_at, amount = parse_entry(entry)
    sum = sum - amount
    if sum <= allowed then
      return math.min(math.max(last_at + MINUTE - now, 1), MINUTE)
    end
    index = index + 1
  end
  return 0
end

-- Requests in flight are members "ID:TOKENS" of a sorted set, by the time when they expire unless their node renews them. The
-- sum of their tokens is in `sum_key`; where it is the same key, tokens are not summed.
local function member_tokens(member)
  return tonumber(string.match(member, ':(%d+)$'))
end

local function remove_expired(set_key, sum_key)
  if sum_key ~= set_key then
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', set_key, '-inf', now)) do
      redis.call('DECRBY', sum_key, member_tokens(member))
    end
  end
  redis.call('ZREMRANGEBYSCORE', set_key, '-inf', now)
  if sum_key ~= set_key and redis.call('EXISTS', set_key) == 0 then
    redis.call('DEL', sum_key)
  end
end

local function add_member(set_key, sum_key, member, lease)
  if redis.call('ZADD', set_key, now + lease, member) == 1 and sum_key ~= set_key then
    redis.call('INCRBY', sum_key, member_tokens(member))
  end
  redis.call('PEXPIRE', set_key, 2 * lease)
  if sum_key ~= set_key then
    redis.call('PEXPIRE', sum_key, 2 * lease)
  end
end

local function remove_member(set_key, sum_key, member)
  if redis.call('ZREM', set_key, member) == 1 and sum_key ~= set_key then
    redis.call('DECRBY', sum_key, member_tokens(member))
  end
end
