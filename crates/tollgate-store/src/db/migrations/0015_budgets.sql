-- What a user or key may spend in a day, week or month of UTC. owner_id is the id of the user or the key. spent is what was settled and charged
-- less what was refunded since period_start; money that is held counts by the owner's own sum. hard: 1 if requests beyond it are rejected.
-- period is day, week or month.
CREATE TABLE budgets (
    id           TEXT NOT NULL PRIMARY KEY,
    owner_id     TEXT NOT NULL,
    amount       BIGINT NOT NULL,
    period       TEXT NOT NULL,
    hard         BIGINT NOT NULL,
    spent        BIGINT NOT NULL,
    period_start BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    version      BIGINT NOT NULL
) {rows};
CREATE INDEX budgets_of_owner ON budgets (owner_id, id);
CREATE INDEX budgets_by_time ON budgets (created_at, id);

-- How many budgets a user or key has, so that those of others are not looked for.
ALTER TABLE users ADD COLUMN budgets BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN budgets BIGINT NOT NULL DEFAULT 0;
