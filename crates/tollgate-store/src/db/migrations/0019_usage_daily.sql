-- The sums of usage_hourly by day of UTC: charts of weeks and months read these. day is when it begins.
CREATE TABLE usage_daily (
    day      BIGINT NOT NULL,
    model    TEXT NOT NULL,
    user_id  TEXT NOT NULL,
    key_id   TEXT NOT NULL,
    channel  TEXT NOT NULL,
    cost     BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    tokens   BIGINT NOT NULL,
    images   BIGINT NOT NULL,
    seconds  BIGINT NOT NULL,
    failed   BIGINT NOT NULL,
    PRIMARY KEY (day, model, user_id, key_id, channel)
) {clustered};
INSERT INTO usage_daily (day, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
SELECT hour - hour % 86400000, model, user_id, key_id, channel, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT),
       CAST(SUM(images) AS BIGINT), CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_hourly GROUP BY hour - hour % 86400000, model, user_id, key_id, channel;
