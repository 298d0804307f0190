-- Users, keys, money, tasks. Amounts are billionths of the currency's unit, times are milliseconds since 1970,
-- booleans are 0 and 1. {clustered} becomes WITHOUT ROWID on SQLite: rows live in their key's order.

CREATE TABLE users (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    unlimited   BIGINT NOT NULL,
    balance     BIGINT NOT NULL,
    held        BIGINT NOT NULL,
    used        BIGINT NOT NULL,
    disabled_at BIGINT,
    created_at  BIGINT NOT NULL
);

CREATE TABLE keys (
    id              TEXT PRIMARY KEY,
    user_id         TEXT NOT NULL REFERENCES users (id),
    label           TEXT NOT NULL,
    hash            TEXT NOT NULL UNIQUE,
    quota           BIGINT,
    held            BIGINT NOT NULL,
    used            BIGINT NOT NULL,
    rpm             BIGINT,
    max_concurrency BIGINT,
    models          TEXT,
    bare_envelope   BIGINT NOT NULL,
    expires_at      BIGINT,
    revoked_at      BIGINT,
    created_at      BIGINT NOT NULL
);

-- One row per hold: what was frozen at submission and what became of it.
CREATE TABLE charges (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL,
    key_id        TEXT NOT NULL,
    model         TEXT NOT NULL,
    price         BIGINT NOT NULL,
    per           BIGINT NOT NULL,
    units         BIGINT NOT NULL,
    held          BIGINT NOT NULL,
    units_settled BIGINT,
    settled       BIGINT,
    released      BIGINT,
    opened_at     BIGINT NOT NULL,
    closed_at     BIGINT
) {clustered};

-- The books. The key says it: one hold, one settlement and one release per charge, no more.
CREATE TABLE ledger (
    ref     TEXT NOT NULL,
    kind    TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key_id  TEXT,
    amount  BIGINT NOT NULL,
    note    TEXT,
    at      BIGINT NOT NULL,
    PRIMARY KEY (ref, kind)
) {clustered};

CREATE TABLE tasks (
    id              TEXT PRIMARY KEY,
    user_id         TEXT NOT NULL,
    key_id          TEXT NOT NULL,
    kind            TEXT NOT NULL,
    family          TEXT NOT NULL,
    model           TEXT NOT NULL,
    state           BIGINT NOT NULL,
    progress        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    started_at      BIGINT,
    ended_at        BIGINT,
    deadline_at     BIGINT NOT NULL,
    due_at          BIGINT NOT NULL,
    owner           TEXT,
    fence           BIGINT NOT NULL,
    failed_attempts BIGINT NOT NULL,
    job             TEXT NOT NULL,
    adjustments     TEXT NOT NULL,
    result          TEXT,
    error_code      TEXT,
    error_message   TEXT,
    cost            BIGINT NOT NULL,
    request_id      TEXT NOT NULL
);
CREATE INDEX tasks_of_user ON tasks (user_id, id);
CREATE INDEX tasks_due ON tasks (due_at) WHERE state < 2;

CREATE TABLE attempts (
    task_id    TEXT NOT NULL,
    number     BIGINT NOT NULL,
    channel    TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT,
    outcome    TEXT,
    error      TEXT,
    PRIMARY KEY (task_id, number)
) {clustered};

CREATE TABLE idempotency (
    user_id     TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    task_id     TEXT NOT NULL,
    receipt     TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (user_id, key)
) {clustered};
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Goes up whenever users or keys change, so that every running server drops what it remembers of them.
INSERT INTO meta (name, value) VALUES ('access_version', 1);
