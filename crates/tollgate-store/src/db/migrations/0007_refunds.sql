-- What was given back of a charge, in billionths: the sum of its ledger entries of the kind refund, never more than was settled. The
-- reference of such an entry is the id of the task or chat, a colon, and the number of the refund in nineteen digits.
ALTER TABLE charges ADD COLUMN refunded BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chats ADD COLUMN refunded BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN refunded BIGINT NOT NULL DEFAULT 0;
