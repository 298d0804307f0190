-- Schema 1, as the program of commit bfb76dd (with `details: None` in chat/error.rs, without which it does not compile) left it on
-- SQLite at a kill -9. Only the deadlines of unfinished tasks were moved, to the year 2100.
-- key of ann: sk-WhSSNt4UMgxEfY9hWsI4FKkdCU8Yr0BYI5oNyNneG2ZgVRyx
-- key of bob: sk-D2a52lCKUXrx3LfIBWxpjyruHCF0thGHtthhkywpkFHzYK0g
-- a finished task of ann: task_01m89hzj28je1mvxpq0ss7dh84rwr3
INSERT INTO users (id, name, unlimited, balance, held, used, rpm, tpm, max_concurrency, disabled_at, created_at) VALUES
('user_mmwgqxzmhan297sg', 'ann', 0, 10880400000, 800000000, 1619600000, NULL, NULL, NULL, NULL, 1795617179429),
('user_sr9wbmc39h7j88sy', 'bob', 1, -420600000, 400000000, 420600000, NULL, NULL, NULL, NULL, 1795617179479),
('user_r2mcyca76czxj7nc', 'eve', 0, 1000000000, 0, 0, NULL, NULL, NULL, 1795617179674, 1795617179523);
INSERT INTO keys (id, user_id, label, hash, quota, held, used, rpm, tpm, max_concurrency, models, bare_envelope, expires_at, revoked_at, created_at) VALUES
('key_b7pjm7jt065amex6', 'user_mmwgqxzmhan297sg', 'laptop', '534b5766c7e28f471b14c89b13eb28d157ffe08976e39692be043fd4c113db65', 5000000000, 800000000, 1619600000, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1795617179553),
('key_sms3cn1fcadr6nsr', 'user_sr9wbmc39h7j88sy', '', 'dbd0d8ff548a6540d8df77ef6baf951b6840ec218ff6c93c7bcf1796714eb68e', NULL, 400000000, 420600000, 600, NULL, 8, '["gpt-5","gpt-image-2-official","native-v3"]', 0, 4070908800000, NULL, 1795617179591),
('key_d7tpb5x0epy1tgyk', 'user_r2mcyca76czxj7nc', '', '8e8e49d41bcfbe840b170b560ed98ee6e37fdc5e12b0c735ef7bfa1d6c477e04', NULL, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, 1795617179655, 1795617179616);
INSERT INTO nodes (id, alive_until) VALUES
('node_4p36bs3dk8fk8agn', 1795617209399),
('node_dg643485sk34fvhs', 1795617212122);
DELETE FROM attempts;
INSERT INTO attempts (task_id, number, channel, fence, queued, external_id, key_print, ticket, ticket_at, adjustments, started_at, ended_at, outcome, error) VALUES
('task_01m89hzj28je1mvxpq0ss7dh84rwr3', 1, 'main', 1, 0, 'tollgate-b7jjc54dq2cgaahg', NULL, NULL, NULL, NULL, 1795617179726, 1795617180025, 'done', NULL),
('task_01m89hzjchjb50kb5xnkn4tgvbv7ky', 1, 'main', 1, 0, 'tollgate-53a79k8h6cea2jhs', NULL, NULL, NULL, NULL, 1795617180053, 1795617180339, 'partial', 'the prompt asks the sandbox for 1 images only ([[sandbox:partial=K]])'),
('task_01m89hzjqeamsjcjz63p88f1qa4112', 1, 'main', 1, 0, 'tollgate-ex6rd1sqwyb3gg9b', NULL, NULL, NULL, NULL, 1795617180411, 1795617180412, 'failed', 'the sandbox was told to fail ([[sandbox:fail]])'),
('task_01m89hzjsgjy37qe3hp8ettstmjkkx', 1, 'main', 1, 0, 'tollgate-y8fj8n89ajbe6yzt', NULL, NULL, NULL, NULL, 1795617180483, 1795617180487, 'failed', 'the sandbox was told to fail this attempt, number 1 ([[sandbox:fail=N]])'),
('task_01m89hzjsgjy37qe3hp8ettstmjkkx', 2, 'main', 2, 0, 'tollgate-b9g688prswmdxts2', NULL, NULL, NULL, NULL, 1795617180692, 1795617180996, 'done', NULL),
('task_01m89hzkb1wj4tscp9hdc2b3ybxanq', 1, 'main', 1, 0, 'tollgate-8bxtk1j041fgt4zk', NULL, NULL, NULL, NULL, 1795617181040, 1795617181052, 'done', NULL),
('task_01m89hzkb9m55hje2xa311tqyrk730', 1, 'main', 1, 0, 'tollgate-se404r33t88b0mfq', NULL, NULL, NULL, NULL, 1795617181048, 1795617181376, 'done', NULL),
('task_01m89hzkxnvw1fm8550y47te36h6wy', 1, 'main', 1, 0, 'tollgate-vgyjy397keh81edr', NULL, NULL, NULL, NULL, 1795617181639, 1795617181988, 'done', NULL),
('task_01m89hzmdhwn9t63978pth87z60wt5', 1, 'main', 1, 0, 'tollgate-r30efpbscvypeqjm', NULL, NULL, NULL, NULL, 1795617182139, NULL, NULL, NULL),
('task_01m89hzmdw86rq26k5feg8yychy6rc', 1, 'main', 1, 0, 'tollgate-k7bjkmw52w8en3d4', NULL, NULL, NULL, NULL, 1795617182171, NULL, NULL, NULL);
DELETE FROM callback_tries;
INSERT INTO callback_tries (task_id, number, at, took_ms, status, error) VALUES
('task_01m89hzj28je1mvxpq0ss7dh84rwr3', 1, 1795617180041, 7, 200, NULL),
('task_01m89hzjqeamsjcjz63p88f1qa4112', 1, 1795617180420, 1, 500, NULL),
('task_01m89hzmek6jy5g4eydk9jsw72xgmv', 1, 1795617182212, 1, 200, NULL);
DELETE FROM callbacks;
INSERT INTO callbacks (task_id, key_id, url, state, due_at, owner, attempts, first_at, ended_at) VALUES
('task_01m89hzj28je1mvxpq0ss7dh84rwr3', 'key_b7pjm7jt065amex6', 'http://127.0.0.1:33745/ok', 'delivered', 1795617240036, NULL, 1, 1795617180025, 1795617180048),
('task_01m89hzjqeamsjcjz63p88f1qa4112', 'key_b7pjm7jt065amex6', 'http://127.0.0.1:33745/fail', 'waiting', 1795617185421, NULL, 1, 1795617180412, NULL),
('task_01m89hzmek6jy5g4eydk9jsw72xgmv', 'key_b7pjm7jt065amex6', 'http://127.0.0.1:33745/ok', 'delivered', 1795617242201, NULL, 1, 1795617182192, 1795617182213);
DELETE FROM charges;
INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, units_settled, settled, released, opened_at, closed_at, seal) VALUES
('task_01m89hzj28je1mvxpq0ss7dh84rwr3', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795617179720, 1795617180025, 1242433294382695095),
('task_01m89hzjchjb50kb5xnkn4tgvbv7ky', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 2, 800000000, 1, 400000000, 400000000, 1795617180049, 1795617180339, -5549670133778264548),
('task_01m89hzjqeamsjcjz63p88f1qa4112', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795617180398, 1795617180412, -3593287789375285907),
('task_01m89hzjsgjy37qe3hp8ettstmjkkx', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795617180464, 1795617180996, -1676285268563870693),
('task_01m89hzkb1wj4tscp9hdc2b3ybxanq', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'native-v3', 200000000, 1000, 5, 1000000, 5, 1000000, 0, 1795617181025, 1795617181052, -7872636743798908036),
('task_01m89hzkb9m55hje2xa311tqyrk730', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795617181033, 1795617181376, -8074429036485578346),
('task_01m89hzkxnvw1fm8550y47te36h6wy', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795617181621, 1795617181988, -1022072303160765072),
('task_01m89hzmdhwn9t63978pth87z60wt5', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795617182129, NULL, -9145634274946892798),
('task_01m89hzmdw86rq26k5feg8yychy6rc', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795617182140, NULL, 2966252639920374227),
('task_01m89hzmek6jy5g4eydk9jsw72xgmv', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795617182163, 1795617182192, -1323605023810329524),
('task_01m89hzmf58mvf3wfdxbxextc0n8tc', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795617182181, NULL, 295647121183125518);
DELETE FROM chats;
INSERT INTO chats (id, user_id, key_id, model, format, streamed, request_id, input_price, cached_input_price, cache_write_price, output_price, reasoning_price, input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven, outcome, channel, upstream_model, attempts, node, opened_at, closed_at, seal) VALUES
('chat_01m89hzkqbjxd3e37aevw1a0aygx4k', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-5', 'chat-completions', 0, 'req_kzk07wm4htt34wbm30qa', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 9, 0, 0, NULL, 9800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795617181416, 1795617181419, 7235703824917564237),
('chat_01m89hzkqvx12t7km2mmr72k2v3p20', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-5', 'chat-completions', 1, 'req_7xqmjtp59jgqvce7r0bc', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 9, 0, 0, NULL, 9800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795617181433, 1795617181435, 8790359250786673171),
('chat_01m89hzkr0v05r017bm2mwd6cptcer', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'gpt-5', 'chat-completions', 0, 'req_cqpwb9nhf696mdw60ahq', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 9, 0, 0, NULL, 9800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795617181437, 1795617181440, 2436276161725016617),
('chat_01m89hzkr4sm2vckdesq873fs3z6x0', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'gpt-5', 'chat-completions', 1, 'req_jrfymf258rnztfgt7vaw', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 9, 0, 0, NULL, 9800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795617181441, 1795617181444, 4584889963806470133),
('chat_01m89hzkx522nxkkerkxt4sy8sd3y1', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'gpt-5', 'chat-completions', 0, 'req_a1wpgkf1fn1hvwca3kvb', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 'failed', NULL, NULL, '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"}]', NULL, 1795617181445, 1795617181605, -7043508507035998483);
DELETE FROM idempotency;
INSERT INTO idempotency (user_id, key, fingerprint, task_id, receipt, created_at) VALUES
('user_mmwgqxzmhan297sg', 'first', '76790b41ced3c474877da014cc2cfede9867cc5268a63c7b8da21943b537cd0b', 'task_01m89hzj28je1mvxpq0ss7dh84rwr3', '{"code":200,"data":[{"status":"submitted","task_id":"task_01m89hzj28je1mvxpq0ss7dh84rwr3"}]}', 1795617179720);
DELETE FROM ledger;
INSERT INTO ledger (ref, kind, user_id, key_id, amount, note, at) VALUES
('credit_08xwfb54435fkqvp', 'credit', 'user_mmwgqxzmhan297sg', NULL, 10000000000, 'opening balance', 1795617179429),
('credit_79c7dksk2e5rh854', 'credit', 'user_mmwgqxzmhan297sg', NULL, 2500000000, 'a gift', 1795617179706),
('credit_p7gfgvhvzp2se76e', 'credit', 'user_r2mcyca76czxj7nc', NULL, 1000000000, 'opening balance', 1795617179523),
('key_b7pjm7jt065amex6', 'quota', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 5000000000, NULL, 1795617179553),
('task_01m89hzj28je1mvxpq0ss7dh84rwr3', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617179720),
('task_01m89hzj28je1mvxpq0ss7dh84rwr3', 'settle', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617180025),
('task_01m89hzjchjb50kb5xnkn4tgvbv7ky', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 800000000, NULL, 1795617180049),
('task_01m89hzjchjb50kb5xnkn4tgvbv7ky', 'release', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617180339),
('task_01m89hzjchjb50kb5xnkn4tgvbv7ky', 'settle', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617180339),
('task_01m89hzjqeamsjcjz63p88f1qa4112', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617180398),
('task_01m89hzjqeamsjcjz63p88f1qa4112', 'release', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617180412),
('task_01m89hzjsgjy37qe3hp8ettstmjkkx', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617180464),
('task_01m89hzjsgjy37qe3hp8ettstmjkkx', 'settle', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617180996),
('task_01m89hzkb1wj4tscp9hdc2b3ybxanq', 'hold', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 1000000, NULL, 1795617181025),
('task_01m89hzkb1wj4tscp9hdc2b3ybxanq', 'settle', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 1000000, NULL, 1795617181052),
('task_01m89hzkb9m55hje2xa311tqyrk730', 'hold', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 400000000, NULL, 1795617181033),
('task_01m89hzkb9m55hje2xa311tqyrk730', 'settle', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 400000000, NULL, 1795617181376),
('task_01m89hzkxnvw1fm8550y47te36h6wy', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617181621),
('task_01m89hzkxnvw1fm8550y47te36h6wy', 'settle', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617181988),
('task_01m89hzmdhwn9t63978pth87z60wt5', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617182129),
('task_01m89hzmdw86rq26k5feg8yychy6rc', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617182140),
('task_01m89hzmek6jy5g4eydk9jsw72xgmv', 'hold', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617182163),
('task_01m89hzmek6jy5g4eydk9jsw72xgmv', 'release', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 400000000, NULL, 1795617182192),
('task_01m89hzmf58mvf3wfdxbxextc0n8tc', 'hold', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 400000000, NULL, 1795617182181),
('user_sr9wbmc39h7j88sy', 'unlimited', 'user_sr9wbmc39h7j88sy', NULL, 0, NULL, 1795617179479);
DELETE FROM meta;
INSERT INTO meta (name, value) VALUES
('access_version', 9),
('chats_forgotten', 0),
('schema_version', 1);
DELETE FROM tasks;
INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, started_at, ended_at, deadline_at, due_at, owner, fence, failed_attempts, job, adjustments, shown, callback_url, queued_attempt, result, error_code, error_message, cost, request_id) VALUES
('task_01m89hzj28je1mvxpq0ss7dh84rwr3', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795617179720, 1795617179723, 1795617180025, 1795617779720, 1795617209723, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:33745/ok', NULL, '{"files":[{"name":"1ngggrwgk1aphdestdfq6r5k8wpnrswa9.png","expires_at":1795703580,"bytes":125907}]}', NULL, NULL, 400000000, 'req_jwkrfr11zbr64h5kpzf2'),
('task_01m89hzjchjb50kb5xnkn4tgvbv7ky', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795617180049, 1795617180051, 1795617180339, 1795617780049, 1795617210051, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:partial=1]] two mills","n":2,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngggrw5vjzda9btfkdarm73c1w85wndj.png","expires_at":1795703580,"bytes":131142}]}', NULL, NULL, 400000000, 'req_b5an6wfz90qca6wbe6k7'),
('task_01m89hzjqeamsjcjz63p88f1qa4112', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 3, 0, 1795617180398, 1795617180408, 1795617180412, 1795617780398, 1795617210408, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail]]","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:33745/fail', NULL, NULL, 'provider_error', 'the sandbox was told to fail ([[sandbox:fail]])', 0, 'req_0mjzf0dmptc25475vesn'),
('task_01m89hzjsgjy37qe3hp8ettstmjkkx', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795617180464, 1795617180476, 1795617180996, 1795617780464, 1795617210689, NULL, 2, 1, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail=1]] a mill in the end","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngggrwcwwpxc1z4a5w4ysd1cegwf074m.png","expires_at":1795703580,"bytes":153271}]}', NULL, NULL, 400000000, 'req_htfb329k5p5gt5x0jn0x'),
('task_01m89hzkb1wj4tscp9hdc2b3ybxanq', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'speech', 'native-v3', 'native-v3', 2, 100, 1795617181025, 1795617181032, 1795617181052, 1795617481025, 1795617211032, NULL, 1, 0, '{"model":"native-v3","family":"native-v3","text":"hello","voice":"alloy"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngggrx4dkvzmhrsajqc5v7s8f4c0mcd8.wav","expires_at":1795703581,"bytes":28618}]}', NULL, NULL, 1000000, 'req_dyqkh1n3j4ba2gfhpwm3'),
('task_01m89hzkb9m55hje2xa311tqyrk730', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795617181033, 1795617181044, 1795617181376, 1795617781033, 1795617211044, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill for bob","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngggrxqxbfmrmezah1akrwx7ehpcbe76.png","expires_at":1795703581,"bytes":210857}]}', NULL, NULL, 400000000, 'req_zv0a0ps7sfddmz6wq749'),
('task_01m89hzkxnvw1fm8550y47te36h6wy', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795617181621, 1795617181628, 1795617181988, 1795617781621, 1795617211628, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"after all that","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngggrxqw110zx5mwan2s9rdqv9qszx44.png","expires_at":1795703581,"bytes":242000}]}', NULL, NULL, 400000000, 'req_4az68nyghcv4ec6trr64'),
('task_01m89hzmdhwn9t63978pth87z60wt5', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 1, 0, 1795617182129, 1795617182136, NULL, 4102444800000, 1795617212136, 'node_rvas0yqecnha91an', 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:33745/ok', NULL, NULL, NULL, NULL, 0, 'req_kdp70gvpp8856d4ybcmd'),
('task_01m89hzmdw86rq26k5feg8yychy6rc', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 1, 0, 1795617182140, 1795617182159, NULL, 4102444800000, 1795617212159, 'node_rvas0yqecnha91an', 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:33745/ok', NULL, NULL, NULL, NULL, 0, 'req_j8krxpqs60jnmt06y3v2'),
('task_01m89hzmek6jy5g4eydk9jsw72xgmv', 'user_mmwgqxzmhan297sg', 'key_b7pjm7jt065amex6', 'image', 'gpt-image-2', 'gpt-image-2-official', 4, 0, 1795617182163, NULL, 1795617182192, 1795617782163, 1795617182163, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:33745/ok', NULL, NULL, 'cancelled', 'cancelled by its user', 0, 'req_c639j0qb1b3mqxc3mxzy'),
('task_01m89hzmf58mvf3wfdxbxextc0n8tc', 'user_sr9wbmc39h7j88sy', 'key_sms3cn1fcadr6nsr', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795617182181, NULL, NULL, 4102444800000, 1795617182181, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, NULL, NULL, NULL, 0, 'req_03scvygw0h017dswf24z');
DELETE FROM webhook_secrets;
INSERT INTO webhook_secrets (key_id, secret, created_at) VALUES
('key_b7pjm7jt065amex6', 'whsec_Egfmewkbi3yhVPLKF4wz0ww8y0BqGtSMgCRflQKegqc=', 1795617180041);
