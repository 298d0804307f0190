-- What was used in each hour, for charts: a sum over the tasks and chats that ended in it and the refunds of it. hour is when it begins;
-- channel is empty if none served. cost is what was settled less what was refunded.
CREATE TABLE usage_hourly (
    hour     BIGINT NOT NULL,
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
    PRIMARY KEY (hour, model, user_id, key_id, channel)
) {clustered};

-- The same sums over what ended or was refunded in one transaction, until they are added to the hours.
CREATE TABLE usage_pending (
    hour     BIGINT NOT NULL,
    model    TEXT NOT NULL,
    user_id  TEXT NOT NULL,
    key_id   TEXT NOT NULL,
    channel  TEXT NOT NULL,
    cost     BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    tokens   BIGINT NOT NULL,
    images   BIGINT NOT NULL,
    seconds  BIGINT NOT NULL,
    failed   BIGINT NOT NULL
) {rows};

-- What ended before this version. The reference of a refund is the id of its task or chat, a colon and nineteen digits.
INSERT INTO usage_hourly (hour, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
SELECT at - at % 3600000, model, user_id, key_id, channel, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT),
       CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT), CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM (
    SELECT closed_at AS at, model, user_id, key_id, COALESCE(channel, '') AS channel, settled AS cost, 1 AS requests,
           input + cached_input + cache_write + output + reasoning AS tokens, 0 AS images, 0 AS seconds,
           CASE WHEN outcome IN ('failed', 'lost') THEN 1 ELSE 0 END AS failed
    FROM chats WHERE closed_at IS NOT NULL
    UNION ALL
    SELECT c.closed_at, c.model, c.user_id, c.key_id,
           COALESCE((SELECT a.channel FROM attempts a WHERE a.task_id = c.id ORDER BY a.number DESC LIMIT 1), ''), c.settled, 1, 0,
           CASE WHEN t.kind = 'image' THEN c.units_settled ELSE 0 END,
           CASE WHEN t.kind = 'video' AND c.units_settled > 0 THEN {seconds of t.shown} ELSE 0 END,
           CASE WHEN t.state = 3 THEN 1 ELSE 0 END
    FROM charges c LEFT JOIN tasks t ON t.id = c.id WHERE c.closed_at IS NOT NULL
    UNION ALL
    SELECT l.at, COALESCE(c.model, h.model, ''), l.user_id, COALESCE(l.key_id, ''),
           COALESCE(h.channel, (SELECT a.channel FROM attempts a WHERE a.task_id = c.id ORDER BY a.number DESC LIMIT 1), ''),
           -l.amount, 0, 0, 0, 0, 0
    FROM ledger l LEFT JOIN charges c ON c.id = substr(l.ref, 1, length(l.ref) - 20)
                  LEFT JOIN chats h ON h.id = substr(l.ref, 1, length(l.ref) - 20)
    WHERE l.kind = 'refund'
) ended GROUP BY at - at % 3600000, model, user_id, key_id, channel;
