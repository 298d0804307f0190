-- Replaces a request's estimated tokens by the actual number.
-- KEYS: per scope, the window of tokens, the set of reservations and their sum. ARGV: the member, the actual tokens.
for scope = 1, #KEYS / 3 do
  remove_member(KEYS[3 * scope - 1], KEYS[3 * scope], ARGV[1])
  window_add(KEYS[3 * scope - 2], tonumber(ARGV[2]))
end
return 0
