-- Channels, prices and models that the admin API writes, and pauses of channels. kind is channel, price, model or pause; body is a
-- JSON object, in it the provider keys of a channel as names of environment variables or encrypted. A deleted channel keeps its
-- row for a while, for the jobs that its provider still has.
CREATE TABLE configuration (
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    version    BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
) {clustered};
-- Goes up with every change of that table, in the same transaction: every node polls it.
INSERT INTO meta (name, value) VALUES ('config_version', 0);

-- What a node says of itself. Rows of earlier versions have nothing here.
ALTER TABLE nodes ADD COLUMN version TEXT;
ALTER TABLE nodes ADD COLUMN started_at BIGINT;
ALTER TABLE nodes ADD COLUMN last_seen_at BIGINT;
ALTER TABLE nodes ADD COLUMN config_version BIGINT;
ALTER TABLE nodes ADD COLUMN config_error TEXT;
