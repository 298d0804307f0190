-- Removes requests that have ended. KEYS: per member, its set and the key of the sum (the same key for none). ARGV: the members.
for index = 1, #KEYS / 2 do
  remove_member(KEYS[2 * index - 1], KEYS[2 * index], ARGV[index])
end
return 0
