-- Users, keys, money, tasks. Amounts are billionths of the currency's unit, times are milliseconds since 1970,
-- booleans are 0 and 1. TEXT compares by bytes on both databases (COLLATE "C" is put in for PostgreSQL).
-- {rows} becomes STRICT on SQLite: a cell holds its column's type or the write fails. {clustered} is that and
-- WITHOUT ROWID: rows live in their key's order.

CREATE TABLE users (
    id              TEXT NOT NULL PRIMARY KEY,
    name            TEXT NOT NULL UNIQUE,
    unlimited       BIGINT NOT NULL,
    balance         BIGINT NOT NULL,
    held            BIGINT NOT NULL,
    used            BIGINT NOT NULL,
    rpm             BIGINT,
    tpm             BIGINT,
    max_concurrency BIGINT,
    disabled_at     BIGINT,
    created_at      BIGINT NOT NULL
) {rows};

CREATE TABLE keys (
    id              TEXT NOT NULL PRIMARY KEY,
    user_id         TEXT NOT NULL REFERENCES users (id),
    label           TEXT NOT NULL,
    hash            TEXT NOT NULL UNIQUE,
    quota           BIGINT,
    held            BIGINT NOT NULL,
    used            BIGINT NOT NULL,
    rpm             BIGINT,
    tpm             BIGINT,
    max_concurrency BIGINT,
    models          TEXT,
    bare_envelope   BIGINT NOT NULL,
    expires_at      BIGINT,
    revoked_at      BIGINT,
    created_at      BIGINT NOT NULL
) {rows};

-- One row per hold: what was frozen at submission and what became of it. seal is a checksum of the row: a price
-- of nothing, or rounding, would otherwise hide a changed cell from the audit.
CREATE TABLE charges (
    id            TEXT NOT NULL PRIMARY KEY,
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
    closed_at     BIGINT,
    seal          BIGINT NOT NULL
) {clustered};

-- Processes that serve, and until when each counts as alive without another sign of life.
CREATE TABLE nodes (
    id          TEXT NOT NULL PRIMARY KEY,
    alive_until BIGINT NOT NULL
) {clustered};

-- One row per chat request, detail and charge in one: prices per 1,000,000 tokens, disjoint counts of tokens. Most are
-- written once, at their end. Where a limit could be overdrawn, the row is there before, with the worst case in its
-- counts; it then has held, and node says who is at work on it, until it ends. What a hold turned out too small for
-- and nobody could pay is forgiven. seal as above. attempts is empty once the details were forgotten.
CREATE TABLE chats (
    id                 TEXT NOT NULL PRIMARY KEY,
    user_id            TEXT NOT NULL,
    key_id             TEXT NOT NULL,
    model              TEXT NOT NULL,
    format             TEXT NOT NULL,
    streamed           BIGINT NOT NULL,
    request_id         TEXT NOT NULL,
    input_price        BIGINT NOT NULL,
    cached_input_price BIGINT NOT NULL,
    cache_write_price  BIGINT NOT NULL,
    output_price       BIGINT NOT NULL,
    reasoning_price    BIGINT NOT NULL,
    input              BIGINT NOT NULL,
    cached_input       BIGINT NOT NULL,
    cache_write        BIGINT NOT NULL,
    output             BIGINT NOT NULL,
    reasoning          BIGINT NOT NULL,
    estimated          BIGINT NOT NULL,
    held               BIGINT,
    settled            BIGINT,
    forgiven           BIGINT,
    outcome            TEXT,
    channel            TEXT,
    upstream_model     TEXT,
    attempts           TEXT NOT NULL,
    node               TEXT REFERENCES nodes (id),
    opened_at          BIGINT NOT NULL,
    closed_at          BIGINT,
    seal               BIGINT NOT NULL
) {clustered};
CREATE INDEX chats_open ON chats (node) WHERE node IS NOT NULL;

-- The books: credit, hold, settle, release, charge (a settlement that nothing was held for), and beside these what was
-- granted: quota of a key, unlimited of a user. The key says it: one hold, one settlement, one release and one charge
-- for each submission, no more. A chat that no row was there for until its end is its own entry: see entries.
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

-- Every movement of money: the ledger, and the charges of chats that were written at their end. Once is enough: a row that
-- says what was charged, copied into a second table in the same breath, would prove nothing.
CREATE VIEW entries AS
    SELECT ref, kind, user_id, key_id, amount, note, at FROM ledger
    UNION ALL
    SELECT id, 'charge', user_id, key_id, settled, NULL, closed_at FROM chats WHERE held IS NULL AND settled <> 0;

-- shown is what a record tells of the request and no other column holds: a JSON object. queued_attempt is the number
-- of an open attempt that its provider has, or may have, in its queue.
CREATE TABLE tasks (
    id              TEXT NOT NULL PRIMARY KEY,
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
    shown           TEXT NOT NULL,
    callback_url    TEXT,
    queued_attempt  BIGINT,
    result          TEXT,
    error_code      TEXT,
    error_message   TEXT,
    cost            BIGINT NOT NULL,
    request_id      TEXT NOT NULL
) {rows};
CREATE INDEX tasks_of_user ON tasks (user_id, id);
-- The queue. The state is in it so that counting what waits never touches the tasks themselves.
CREATE INDEX tasks_due ON tasks (due_at, state) WHERE state < 2;

-- One row per try on a channel, with the fence it was begun under. queued is 1 where the provider takes the work into
-- its queue: what became of such an attempt is known only from the provider, so it outlives its lease. ticket is the
-- provider's name for the work, external_id ours, key_print says with which of the channel's keys to ask. adjustments is
-- a JSON array: what the provider was asked for instead of what the job says.
CREATE TABLE attempts (
    task_id     TEXT NOT NULL,
    number      BIGINT NOT NULL,
    channel     TEXT NOT NULL,
    fence       BIGINT NOT NULL,
    queued      BIGINT NOT NULL,
    external_id TEXT,
    key_print   TEXT,
    ticket      TEXT,
    ticket_at   BIGINT,
    adjustments TEXT,
    started_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    outcome     TEXT,
    error       TEXT,
    PRIMARY KEY (task_id, number)
) {clustered};

-- One row per ended task that somebody wants to hear of, written with its end. state: waiting, delivered, given_up.
-- owner has it until due_at. attempts goes up with each claim: it numbers the tries, and one with an older number has
-- lost its say.
CREATE TABLE callbacks (
    task_id  TEXT NOT NULL PRIMARY KEY,
    key_id   TEXT NOT NULL,
    url      TEXT NOT NULL,
    state    TEXT NOT NULL,
    due_at   BIGINT NOT NULL,
    owner    TEXT,
    attempts BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    ended_at BIGINT
) {clustered};
CREATE INDEX callbacks_due ON callbacks (due_at) WHERE state = 'waiting';

-- What became of each try; none of one whose node died over it.
CREATE TABLE callback_tries (
    task_id TEXT NOT NULL,
    number  BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    took_ms BIGINT NOT NULL,
    status  BIGINT,
    error   TEXT,
    PRIMARY KEY (task_id, number)
) {clustered};

-- What a key's callbacks are signed with. Signing needs the secret itself, so no hash would do.
CREATE TABLE webhook_secrets (
    key_id     TEXT NOT NULL PRIMARY KEY,
    secret     TEXT NOT NULL,
    created_at BIGINT NOT NULL
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
-- The details of chat requests that were opened before this moment are forgotten.
INSERT INTO meta (name, value) VALUES ('chats_forgotten', 0);
