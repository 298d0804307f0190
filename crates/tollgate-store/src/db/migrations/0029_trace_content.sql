-- Whether what the chats of a key say is recorded in traces. Older nodes record nothing.
ALTER TABLE keys ADD COLUMN trace_content BIGINT NOT NULL DEFAULT 0;
