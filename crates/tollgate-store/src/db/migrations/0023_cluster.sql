-- What a node says of itself beside 0011: the schema that its program knows, how far its machine's clock is ahead of the database's (in
-- milliseconds), its settings that all nodes must have in common (a JSON object), and why it is not ready (NULL: it is).
ALTER TABLE nodes ADD COLUMN schema_version BIGINT;
ALTER TABLE nodes ADD COLUMN clock_offset BIGINT;
ALTER TABLE nodes ADD COLUMN settings TEXT;
ALTER TABLE nodes ADD COLUMN not_ready TEXT;
-- The node that does what only one has to do. One row.
CREATE TABLE leader (
    name  TEXT NOT NULL PRIMARY KEY,
    node  TEXT NOT NULL,
    until BIGINT NOT NULL
) {clustered};
INSERT INTO leader (name, node, until) VALUES ('leader', '', 0);
-- Which users and keys changed: `version` is the access_version that the change made.
CREATE TABLE access_changes (
    version BIGINT NOT NULL PRIMARY KEY,
    user_id TEXT,
    key_id  TEXT
) {rows};
