-- Money that a node has taken out of a user's balance and a key's quota for the chats that it serves, so that these hold it in memory.
-- `amount` is what is left of it, and part of `held` of user and key: granted - settled - released. All in billionths.
CREATE TABLE grants (
    id        TEXT NOT NULL PRIMARY KEY,
    node      TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    key_id    TEXT NOT NULL,
    amount    BIGINT NOT NULL,
    granted   BIGINT NOT NULL,
    settled   BIGINT NOT NULL DEFAULT 0,
    released  BIGINT NOT NULL DEFAULT 0,
    opened_at BIGINT NOT NULL,
    -- When another node asked for it back.
    asked_at  BIGINT
) {clustered};
CREATE INDEX grants_by_user ON grants (user_id);
CREATE INDEX grants_by_node ON grants (node);
