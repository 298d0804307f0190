-- Audits that were started by the admin API. violations is a JSON array; ended_at is null while the audit runs, violations where
-- it could not be finished.
CREATE TABLE audits (
    id         TEXT NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT,
    violations TEXT
) {rows};
CREATE INDEX audits_by_time ON audits (started_at, id);
