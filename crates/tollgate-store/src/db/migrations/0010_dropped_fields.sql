-- The fields of a chat's request that a translation left out: a JSON array of names. Null if there were none.
ALTER TABLE chats ADD COLUMN dropped TEXT;
