-- What the admin API edits has a version, from 1 up: a write names the version that it was made for.
ALTER TABLE users ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE keys ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
-- The first characters of the key, for people. The keys of earlier versions have none.
ALTER TABLE keys ADD COLUMN hint TEXT NOT NULL DEFAULT 'sk-';
-- The hash that a rotated key had before; it is valid until that time.
ALTER TABLE keys ADD COLUMN previous_hash TEXT;
ALTER TABLE keys ADD COLUMN previous_valid_until BIGINT;
CREATE INDEX keys_by_previous_hash ON keys (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX users_by_time ON users (created_at, id);
CREATE INDEX keys_by_time ON keys (created_at, id);
CREATE INDEX keys_of_user ON keys (user_id, created_at, id);

-- reference is the name that a payment system gave to a credit: one credit for each.
ALTER TABLE ledger ADD COLUMN reference TEXT;
CREATE UNIQUE INDEX ledger_references ON ledger (reference) WHERE reference IS NOT NULL;
CREATE INDEX ledger_by_time ON ledger (at, ref, kind);
CREATE INDEX ledger_of_user ON ledger (user_id, at, ref, kind);

-- Bearer tokens of the admin API. scopes is a JSON array.
CREATE TABLE admin_tokens (
    id           TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    hash         TEXT NOT NULL UNIQUE,
    hint         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    version      BIGINT NOT NULL
) {rows};
CREATE INDEX admin_tokens_by_time ON admin_tokens (created_at, id);

-- People who sign in to the console. password is an argon2id hash; there is none until the sign-in link was used.
CREATE TABLE admins (
    id              TEXT NOT NULL PRIMARY KEY,
    name            TEXT NOT NULL UNIQUE,
    role            TEXT NOT NULL,
    password        TEXT,
    disabled        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    last_sign_in_at BIGINT,
    version         BIGINT NOT NULL
) {rows};
CREATE INDEX admins_by_time ON admins (created_at, id);

-- One-time links. admin_id is empty for the link of a first start, which makes the first admin.
CREATE TABLE admin_links (
    hash       TEXT NOT NULL PRIMARY KEY,
    admin_id   TEXT NOT NULL,
    expires_at BIGINT NOT NULL
) {clustered};

CREATE TABLE admin_sessions (
    hash         TEXT NOT NULL PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    admin_id     TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    fresh_until  BIGINT NOT NULL
) {rows};
CREATE INDEX admin_sessions_of_admin ON admin_sessions (admin_id, created_at);

-- Failed sign-ins: subject is a name or an address.
CREATE TABLE admin_sign_in_failures (
    subject TEXT NOT NULL,
    at      BIGINT NOT NULL,
    id      TEXT NOT NULL,
    PRIMARY KEY (subject, at, id)
) {clustered};
CREATE INDEX admin_sign_in_failures_by_age ON admin_sign_in_failures (at);

-- The trail: one row per admin write, chained by hash, committed with the write. before and after are JSON objects.
CREATE TABLE admin_events (
    seq         BIGINT NOT NULL PRIMARY KEY,
    at          BIGINT NOT NULL,
    actor       TEXT NOT NULL,
    token_id    TEXT,
    address     TEXT,
    request_id  TEXT,
    action      TEXT NOT NULL,
    object_type TEXT NOT NULL,
    object_id   TEXT NOT NULL,
    before      TEXT,
    after       TEXT,
    reason      TEXT,
    prev_hash   TEXT NOT NULL,
    hash        TEXT NOT NULL
) {rows};
CREATE INDEX admin_events_by_time ON admin_events (at, seq);
CREATE INDEX admin_events_of_object ON admin_events (object_id, seq);
-- The number of the last event: locks the end of the chain, and shows when rows are missing there.
INSERT INTO meta (name, value) VALUES ('admin_event_seq', 0);

-- The reply to each admin write, for a day: for the repeats of its idempotency key, and for a commit whose answer was lost.
-- actor, path and key identify the request; without an idempotency key, key is write_id and actor and path are empty.
CREATE TABLE admin_writes (
    actor       TEXT NOT NULL,
    path        TEXT NOT NULL,
    key         TEXT NOT NULL,
    write_id    TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status      BIGINT NOT NULL,
    body        TEXT NOT NULL,
    version     BIGINT,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (actor, path, key)
) {clustered};
CREATE INDEX admin_writes_by_age ON admin_writes (created_at);
