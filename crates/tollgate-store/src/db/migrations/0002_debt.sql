-- What a chat costs beyond what its user's balance and its key's quota have left is charged all the same: debt is that
-- part of settled (before, it was written off: forgiven). clamped is how many tokens the provider reported beyond what
-- the request can have used; they are not charged.
ALTER TABLE chats ADD COLUMN debt BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chats ADD COLUMN clamped BIGINT NOT NULL DEFAULT 0;

-- As before, and beside it an entry for the debt of each chat: it repeats a part of a charge, and moves nothing.
DROP VIEW entries;
CREATE VIEW entries AS
    SELECT ref, kind, user_id, key_id, amount, note, at FROM ledger
    UNION ALL
    SELECT id, 'charge', user_id, key_id, settled, NULL, closed_at FROM chats WHERE held IS NULL AND settled <> 0
    UNION ALL
    SELECT id, 'debt', user_id, key_id, debt, NULL, closed_at FROM chats WHERE debt <> 0;

-- The chats that the audit and the books ask for by what went wrong with them; few rows.
CREATE INDEX chats_in_debt ON chats (user_id, key_id) WHERE debt <> 0;
