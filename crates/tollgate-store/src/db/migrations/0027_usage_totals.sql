-- The sums of usage_hourly by one dimension, so that reports of many hours read few rows. period_ms is the length of the period, an hour or a
-- day, begins_at when it begins. dimension is model, user, key or channel, and name the model, user, key or channel; or dimension is all, and name empty.
CREATE TABLE usage_totals (
    period_ms BIGINT NOT NULL,
    dimension TEXT NOT NULL,
    begins_at BIGINT NOT NULL,
    name      TEXT NOT NULL,
    cost      BIGINT NOT NULL,
    requests  BIGINT NOT NULL,
    tokens    BIGINT NOT NULL,
    images    BIGINT NOT NULL,
    seconds   BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    PRIMARY KEY (period_ms, dimension, begins_at, name)
) {clustered};

-- The totals are complete from this time on. Those of earlier hours are filled in after this migration, day by day.
INSERT INTO meta (name, value)
SELECT 'usage_totals_from', CASE WHEN EXISTS (SELECT 1 FROM usage_hourly) THEN 9223372036854775807 ELSE 0 END;
