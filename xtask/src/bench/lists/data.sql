-- Rows for the bench of lists: 200 users with two keys each, {chats} chats and {tasks} tasks of them, evenly over 60 days from {start}
-- on ({span} is their length, all in milliseconds), and the sums of usage over them. 40 chats and 10 tasks are of user_rare, key_rare,
-- rare-model and rare-channel and failed with rare_error. Placeholders differ by database: {series N} are the numbers below N, {random}
-- is twenty hexadecimal digits, {time} the ten digits of base 32 for the time t that ids contain, {six X} a number as six digits.

INSERT INTO users (id, name, unlimited, balance, held, used, created_at)
SELECT 'user_bench' || {six i}, 'bench-' || i, 0, 1000000000000000, 0, 0, {start} + i FROM {series 200};
INSERT INTO users (id, name, unlimited, balance, held, used, created_at)
VALUES ('user_rare', 'rare', 0, 1000000000000000, 0, 0, {start});

INSERT INTO keys (id, user_id, label, hash, held, used, bare_envelope, created_at)
SELECT 'key_bench' || {six i}, 'user_bench' || {six (i / 2)}, '', 'bench-' || i, 0, 0, 0, {start} + i FROM {series 400};
INSERT INTO keys (id, user_id, label, hash, held, used, bare_envelope, created_at)
VALUES ('key_rare', 'user_rare', '', 'rare', 0, 0, 0, {start});

INSERT INTO chats (id, user_id, key_id, model, format, streamed, request_id, input_price, cached_input_price, cache_write_price, output_price,
    reasoning_price, input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven, outcome, channel,
    upstream_model, attempts, node, opened_at, closed_at, seal)
SELECT 'chat_' || {time} || {random},
    CASE WHEN rare THEN 'user_rare' ELSE 'user_bench' || {six (k / 2)} END,
    CASE WHEN rare THEN 'key_rare' ELSE 'key_bench' || {six k} END,
    CASE WHEN rare THEN 'rare-model' ELSE 'chat-model-' || ((k + i / 400 % 4) % 10) END,
    CASE i % 4 WHEN 0 THEN 'messages' WHEN 1 THEN 'responses' ELSE 'chat-completions' END, i % 2, 'req_' || {random}, 1250000000, 125000000,
    1250000000, 10000000000, 10000000000, 200 + i % 100, 0, 0, 50 + i % 50, 0, 0, NULL, 1000000 + i % 1000, 0,
    CASE WHEN rare OR i % 100 = 13 THEN 'failed' WHEN i % 200 = 14 THEN 'client_gone' WHEN i % 200 = 15 THEN 'cut' ELSE 'done' END,
    CASE WHEN rare THEN 'rare-channel' ELSE 'chat-channel-' || ((k + i / 400 % 4) % 10 % 4) END, 'upstream-model',
    CASE WHEN rare THEN '[{"channel":"rare-channel","ms":120,"outcome":"rare_error"}]'
         WHEN i % 100 = 13 THEN '[{"channel":"chat-channel-1","ms":120,"outcome":"overloaded"}]' ELSE '[]' END,
    NULL, t - 900, t, 0
FROM (SELECT i, {start} + i * {span} / {chats} AS t, i * 2654435761 % 4294967296 % 400 AS k, i % ({chats} / 40) = {chats} / 80 AS rare
      FROM {series {chats}}) n;

INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, started_at, ended_at, deadline_at, {sqlite due_at,} fence,
    failed_attempts, job, adjustments, shown, result, error_code, error_message, cost, request_id)
SELECT 'task_' || {time} || {random},
    CASE WHEN rare THEN 'user_rare' ELSE 'user_bench' || {six (k / 2)} END,
    CASE WHEN rare THEN 'key_rare' ELSE 'key_bench' || {six k} END,
    CASE i % 3 WHEN 0 THEN 'image' WHEN 1 THEN 'video' ELSE 'speech' END, 'bench',
    CASE WHEN rare THEN 'rare-model' ELSE 'task-model-' || ((k + i / 400 % 4) % 10) END,
    CASE WHEN rare OR i % 50 = 13 THEN 3 WHEN i % 100 = 14 THEN 4 ELSE 2 END, 100, t, t + 50, t + 20000, t + 600000, {sqlite t,} 1, 0,
    '{"model":"bench","prompt":"a harbour at dawn, seen from the lighthouse, with boats that leave for the day","size":"1:1","n":1}', '[]',
    '{"seconds":5}', '{"files":[]}', CASE WHEN rare THEN 'rare_error' WHEN i % 50 = 13 THEN 'provider_error' END, NULL,
    CASE WHEN rare OR i % 50 = 13 OR i % 100 = 14 THEN 0 ELSE 20000000 END, 'req_' || {random}
FROM (SELECT i, {start} + i * {span} / {tasks} AS t, i * 2654435761 % 4294967296 % 400 AS k, i % ({tasks} / 10) = {tasks} / 20 AS rare
      FROM {series {tasks}}) n;

INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, units_settled, settled, released, opened_at, closed_at, seal)
SELECT id, user_id, key_id, model, 20000000, 1, 1, 20000000, CASE WHEN cost > 0 THEN 1 ELSE 0 END, cost, 20000000 - cost, created_at, ended_at, 0
FROM tasks ORDER BY id;

-- The provider's job id (`ticket`) of a task has its number, from 0, and the end of its id: job-17-x4c2…
INSERT INTO attempts (task_id, number, channel, fence, queued, ticket, ticket_at, started_at, ended_at, outcome)
SELECT id, 1, CASE WHEN model = 'rare-model' THEN 'rare-channel' ELSE 'task-channel-' || (CAST(substr(model, 12) AS BIGINT) % 4) END, 1, 1,
    'job-' || ((created_at - {start}) * {tasks} / {span}) || '-' || substr(id, 31), created_at + 100, created_at + 50, ended_at,
    CASE WHEN state = 2 THEN 'done' ELSE 'failed' END
FROM tasks ORDER BY id;

INSERT INTO ledger (ref, kind, user_id, key_id, amount, at)
SELECT id, 'hold', user_id, key_id, held, opened_at FROM charges ORDER BY id;
INSERT INTO ledger (ref, kind, user_id, key_id, amount, at)
SELECT id, CASE WHEN settled > 0 THEN 'settle' ELSE 'release' END, user_id, key_id, held, closed_at FROM charges ORDER BY id;

INSERT INTO usage_hourly (hour, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
SELECT at - at % 3600000, model, user_id, key_id, channel, CAST(SUM(cost) AS BIGINT), CAST(COUNT(*) AS BIGINT), CAST(SUM(tokens) AS BIGINT),
    CAST(SUM(images) AS BIGINT), CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM (SELECT closed_at AS at, model, user_id, key_id, channel, settled AS cost, input + output AS tokens, 0 AS images, 0 AS seconds,
             CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END AS failed
      FROM chats
      UNION ALL
      SELECT t.ended_at, t.model, t.user_id, t.key_id, a.channel, t.cost, 0, CASE WHEN t.kind = 'image' AND t.cost > 0 THEN 1 ELSE 0 END,
             CASE WHEN t.kind = 'video' AND t.cost > 0 THEN 5 ELSE 0 END, CASE WHEN t.state = 3 THEN 1 ELSE 0 END
      FROM tasks t JOIN attempts a ON a.task_id = t.id) ended
GROUP BY at - at % 3600000, model, user_id, key_id, channel ORDER BY 1, 2, 3, 4, 5;
INSERT INTO usage_daily (day, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
SELECT hour - hour % 86400000, model, user_id, key_id, channel, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT),
    CAST(SUM(images) AS BIGINT), CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_hourly GROUP BY hour - hour % 86400000, model, user_id, key_id, channel ORDER BY 1, 2, 3, 4, 5;

INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
SELECT 3600000, 'all', hour, '', CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT),
       CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_hourly GROUP BY hour;
INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
SELECT 3600000, 'model', hour, model, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT),
       CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_hourly GROUP BY hour, model;
INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
SELECT 3600000, 'user', hour, user_id, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT),
       CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_hourly GROUP BY hour, user_id;
INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
SELECT 3600000, 'key', hour, key_id, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT),
       CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_hourly GROUP BY hour, key_id;
INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
SELECT 3600000, 'channel', hour, channel, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT),
       CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_hourly GROUP BY hour, channel;
INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
SELECT 86400000, dimension, begins_at - begins_at % 86400000, name, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT),
       CAST(SUM(seconds) AS BIGINT), CAST(SUM(failed) AS BIGINT)
FROM usage_totals GROUP BY dimension, begins_at - begins_at % 86400000, name;

UPDATE users SET used = s.cost FROM (SELECT user_id, CAST(SUM(cost) AS BIGINT) AS cost FROM usage_daily GROUP BY user_id) s WHERE s.user_id = users.id;
UPDATE keys SET used = s.cost FROM (SELECT key_id, CAST(SUM(cost) AS BIGINT) AS cost FROM usage_daily GROUP BY key_id) s WHERE s.key_id = keys.id;
UPDATE users SET balance = balance - used WHERE id IN (SELECT user_id FROM usage_daily);
