-- Renews requests in flight for another lease, and adds those that are missing: Redis may have lost them.
-- KEYS: per member, its set and the key of the sum (the same key for none). ARGV: the lease in ms, then the members.
for index = 1, #KEYS / 2 do
  add_member(KEYS[2 * index - 1], KEYS[2 * index], ARGV[index + 1], tonumber(ARGV[1]))
end
return 0
