-- Sessions of the portal: a user signed in with an API key. The session ends with the key.
CREATE TABLE portal_sessions (
    hash         TEXT NOT NULL PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    key_id       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL
) {clustered};

-- The key with which a user created this one.
ALTER TABLE keys ADD COLUMN parent_key_id TEXT;
