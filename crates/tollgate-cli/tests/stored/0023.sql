-- Schema 23, as the program of commit 6640d99 left it on SQLite at a kill -9. Only the deadlines of unfinished
-- tasks were moved, to the year 2100.
-- key of ann: sk-ii6BFZsP2daLLO6aVewCApeIUdxlNycK6VvSBRReSQf0pZXP
-- key of bob: sk-xOa816YviVnq1LCzm9ybYPFfZJmNDC2ReyWGzGCrYoI9AOYq
-- a finished task of ann: task_01m89h01fm3y1fp7d8s2feq0md3svy
INSERT INTO users (id, name, unlimited, balance, held, used, rpm, tpm, max_concurrency, disabled_at, created_at, version, budgets) VALUES
('user_c03mgt7waksv6pwk', 'ann', 0, 11489200000, 800000000, 1510800000, NULL, NULL, NULL, NULL, 1795616146616, 1, 1),
('user_kq4y63834skb4552', 'bob', 1, -422600000, 400000000, 422600000, NULL, NULL, NULL, NULL, 1795616146656, 1, 0),
('user_57qeyj3fhajasttn', 'eve', 0, 1000000000, 0, 0, NULL, NULL, NULL, 1795616146875, 1795616146694, 2, 0);
INSERT INTO keys (id, user_id, label, hash, quota, held, used, rpm, tpm, max_concurrency, models, bare_envelope, expires_at, revoked_at, created_at, version, hint, previous_hash, previous_valid_until, budgets, parent_key_id) VALUES
('key_kwyp31kewrtb07dv', 'user_c03mgt7waksv6pwk', 'laptop', '2787e8433237dc660ffd049a9db8bd8af777f4813925f8caaf628e99a11b51fc', 4500000000, 800000000, 1510800000, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1795616146742, 2, 'sk-ii6BFZsP', NULL, NULL, 1, NULL),
('key_k2n6q85prf0m3qgr', 'user_kq4y63834skb4552', '', '07e4cc73ca639ff9836a34da5d90cb76f38c01ebe37c30a8bfaa424c1ad1ed1f', NULL, 400000000, 422600000, 600, NULL, 8, '["gpt-5","gpt-image-2-official","native-v3"]', 0, 4070908800000, NULL, 1795616146772, 2, 'sk-xOa816Yv', 'eb387b2557ef15a9c590a33f67329d7bf2f6fb6d5c93d1c8994106026d1d2980', 1795616749172, 0, NULL),
('key_ecs9v01r2ptmd213', 'user_57qeyj3fhajasttn', '', '332dc70fa9cf6671998f5be01dda765174ce0a3ea59f8845d53a11251fe878bb', NULL, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, 1795616146844, 1795616146811, 2, 'sk-c7XkzRGY', NULL, NULL, 0, NULL),
('key_c9m5096xf8rw7sz4', 'user_c03mgt7waksv6pwk', 'child', '394cae2eb8d6975dc81ec82648ccd0577c798819b41012ff95f42fd3810e33ec', 500000000, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1795616149236, 1, 'sk-KC1xvUov', NULL, NULL, 0, 'key_kwyp31kewrtb07dv');
INSERT INTO nodes (id, alive_until, version, started_at, last_seen_at, config_version, config_error, schema_version, clock_offset, settings, not_ready) VALUES
('node_8xf6mrmztwjrt40t', 1795616155725, '0.2.0', 1795616146543, 1795616154478, 3, NULL, 23, NULL, '{"currency":"USD","fingerprint":"dc8aa7968f2595c2"}', NULL),
('node_m7xt6mh01k7wzp12', 1795616185919, '0.2.0', 1795616155903, 1795616155931, 3, NULL, 23, NULL, '{"currency":"USD","fingerprint":"16e2caa101dcedd1"}', NULL);
DELETE FROM access_changes;
INSERT INTO access_changes (version, user_id, key_id) VALUES
(2, 'user_c03mgt7waksv6pwk', NULL),
(3, 'user_kq4y63834skb4552', NULL),
(4, 'user_57qeyj3fhajasttn', NULL),
(5, NULL, 'key_kwyp31kewrtb07dv'),
(6, NULL, 'key_k2n6q85prf0m3qgr'),
(7, NULL, 'key_ecs9v01r2ptmd213'),
(8, NULL, 'key_ecs9v01r2ptmd213'),
(9, 'user_57qeyj3fhajasttn', NULL),
(10, NULL, 'key_k2n6q85prf0m3qgr'),
(11, 'user_c03mgt7waksv6pwk', NULL),
(12, NULL, 'key_kwyp31kewrtb07dv'),
(13, NULL, 'key_c9m5096xf8rw7sz4'),
(14, NULL, 'key_kwyp31kewrtb07dv');
DELETE FROM admin_events;
INSERT INTO admin_events (seq, at, actor, token_id, address, request_id, action, object_type, object_id, before, after, reason, prev_hash, hash) VALUES
(1, 1795616146616, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_c03mgt7waksv6pwk', NULL, '{"id":"user_c03mgt7waksv6pwk","name":"ann","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T14:15:46.616Z","version":1,"balance":"10"}', NULL, '0000000000000000000000000000000000000000000000000000000000000000', '9b44a8f9c4ab58c78c72a73bb45db090588d4e8353c5884ed814f0147286b109'),
(2, 1795616146656, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_kq4y63834skb4552', NULL, '{"id":"user_kq4y63834skb4552","name":"bob","unlimited":true,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T14:15:46.656Z","version":1}', NULL, '9b44a8f9c4ab58c78c72a73bb45db090588d4e8353c5884ed814f0147286b109', '94a95a5741edd1638987c7a1d61124334b4b94efec6720be6f01f0ae31d28d3d'),
(3, 1795616146694, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_57qeyj3fhajasttn', NULL, '{"id":"user_57qeyj3fhajasttn","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T14:15:46.694Z","version":1,"balance":"1"}', NULL, '94a95a5741edd1638987c7a1d61124334b4b94efec6720be6f01f0ae31d28d3d', '7cbaff2705b67c1443c0eaaacfb217af4f8b5a8ad68532ef6ad7c43437503df7'),
(4, 1795616146742, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_kwyp31kewrtb07dv', NULL, '{"id":"key_kwyp31kewrtb07dv","name":"laptop","user_id":"user_c03mgt7waksv6pwk","hint":"sk-ii6BFZsP","quota":"5","rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T14:15:46.742Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', NULL, '7cbaff2705b67c1443c0eaaacfb217af4f8b5a8ad68532ef6ad7c43437503df7', '11d8fac32fbe1abd3f0fb526871739b1f97f8d44214b6af86c71375bc0d2de81'),
(5, 1795616146772, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_k2n6q85prf0m3qgr', NULL, '{"id":"key_k2n6q85prf0m3qgr","name":"","user_id":"user_kq4y63834skb4552","hint":"sk-E7EmG1vX","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T14:15:46.772Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":null,"version":1}', NULL, '11d8fac32fbe1abd3f0fb526871739b1f97f8d44214b6af86c71375bc0d2de81', 'b650943c5b73e5cd1bf2b5790501e1beb5f2e702088da330ff9b615b85b201ce'),
(6, 1795616146811, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_ecs9v01r2ptmd213', NULL, '{"id":"key_ecs9v01r2ptmd213","name":"","user_id":"user_57qeyj3fhajasttn","hint":"sk-c7XkzRGY","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T14:15:46.811Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', NULL, 'b650943c5b73e5cd1bf2b5790501e1beb5f2e702088da330ff9b615b85b201ce', '03003b6e70c32c97312cfae518afabfe2403150ed1d907a996022bc7bd517e8f'),
(7, 1795616146844, 'cli', NULL, NULL, NULL, 'key.revoke', 'key', 'key_ecs9v01r2ptmd213', '{"id":"key_ecs9v01r2ptmd213","name":"","user_id":"user_57qeyj3fhajasttn","hint":"sk-c7XkzRGY","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T14:15:46.811Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', '{"id":"key_ecs9v01r2ptmd213","name":"","user_id":"user_57qeyj3fhajasttn","hint":"sk-c7XkzRGY","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T14:15:46.811Z","expires_at":null,"revoked_at":"2026-11-25T14:15:46.844Z","previous_valid_until":null,"version":2}', NULL, '03003b6e70c32c97312cfae518afabfe2403150ed1d907a996022bc7bd517e8f', '5b0eb7f0d551601c377995a6b35c2a5c9faf6ebf23df2f5aada0f00de84bb925'),
(8, 1795616146875, 'cli', NULL, NULL, NULL, 'user.update', 'user', 'user_57qeyj3fhajasttn', '{"id":"user_57qeyj3fhajasttn","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T14:15:46.694Z","version":1}', '{"id":"user_57qeyj3fhajasttn","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":true,"created_at":"2026-11-25T14:15:46.694Z","version":2}', NULL, '5b0eb7f0d551601c377995a6b35c2a5c9faf6ebf23df2f5aada0f00de84bb925', '2f3d9a10a9f1914813f8942a28befb26a08b7e5d0faaafaabf8e76ef8aa2f798'),
(9, 1795616146908, 'cli', NULL, NULL, NULL, 'user.credit', 'user', 'user_c03mgt7waksv6pwk', NULL, '{"id":"credit_h9rnwvw65hjxv9ws:credit","at":"2026-11-25T14:15:46.908Z","user_id":"user_c03mgt7waksv6pwk","key_id":null,"kind":"credit","amount":"2.5","delta":"2.5","ref":"credit_h9rnwvw65hjxv9ws","reference":null,"reason":"a gift"}', 'a gift', '2f3d9a10a9f1914813f8942a28befb26a08b7e5d0faaafaabf8e76ef8aa2f798', '3cd40ec05130d283f267e185bd73476e321e99049938e71c5116814c0b817129'),
(10, 1795616149139, 'owner', NULL, '127.0.0.1', 'req_e81dkmkywckp6hp4pr75', 'token.create', 'token', 'tok_8hegrtt5xbj8263b', NULL, '{"id":"tok_8hegrtt5xbj8263b","name":"reports","scopes":["users:read"],"hint":"adm_9ObXNTzm","created_at":"2026-11-25T14:15:49.139Z","expires_at":null,"last_used_at":null,"version":1}', NULL, '3cd40ec05130d283f267e185bd73476e321e99049938e71c5116814c0b817129', '4d959d9c6f2a4025af6844d7d6e1c5f404b53625785e10d7aa160ba0e8ba1405'),
(11, 1795616149153, 'owner', NULL, '127.0.0.1', 'req_6mn5evz9m0grgcy5pr24', 'admin.create', 'admin', 'admin_kyy7ww5874qq3swp', NULL, '{"id":"admin_kyy7ww5874qq3swp","name":"ada","role":"finance","disabled":false,"created_at":"2026-11-25T14:15:49.153Z","last_sign_in_at":null,"version":1}', NULL, '4d959d9c6f2a4025af6844d7d6e1c5f404b53625785e10d7aa160ba0e8ba1405', 'c72481c18f5c739eeaf3cfe5fef90f56c7bbff83adf19b6991b44276ca8e7a9d'),
(12, 1795616149163, 'owner', NULL, '127.0.0.1', 'req_kz3jrpbh03wbn5p5a6tm', 'user.credit', 'user', 'user_c03mgt7waksv6pwk', NULL, '{"id":"credit_h53px7htkat1vkc0:credit","at":"2026-11-25T14:15:49.163Z","user_id":"user_c03mgt7waksv6pwk","key_id":null,"kind":"credit","amount":"0.5","delta":"0.5","ref":"credit_h53px7htkat1vkc0","reference":"payment-1","reason":"goodwill"}', 'goodwill', 'c72481c18f5c739eeaf3cfe5fef90f56c7bbff83adf19b6991b44276ca8e7a9d', 'c4e88a9b12e8558897cf3135f21c277060d4181effff6e9d0a73840d46cef159'),
(13, 1795616149172, 'owner', NULL, '127.0.0.1', 'req_w3v8jrddkv57ftky76w0', 'key.rotate', 'key', 'key_k2n6q85prf0m3qgr', '{"id":"key_k2n6q85prf0m3qgr","name":"","user_id":"user_kq4y63834skb4552","hint":"sk-E7EmG1vX","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T14:15:46.772Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":null,"version":1}', '{"id":"key_k2n6q85prf0m3qgr","name":"","user_id":"user_kq4y63834skb4552","hint":"sk-xOa816Yv","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T14:15:46.772Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":"2026-11-25T14:25:49.172Z","version":2}', NULL, 'c4e88a9b12e8558897cf3135f21c277060d4181effff6e9d0a73840d46cef159', '91732802c1c88d95e1fce704d49f2ef62a08d547d879cec549ca6d603dc6f7fa'),
(14, 1795616149180, 'owner', NULL, '127.0.0.1', 'req_fyepeq5cgy714wfanez7', 'task.refund', 'task', 'task_01m89h01fm3y1fp7d8s2feq0md3svy', NULL, '{"id":"task_01m89h01fm3y1fp7d8s2feq0md3svy:0000000000000000001:refund","at":"2026-11-25T14:15:49.180Z","user_id":"user_c03mgt7waksv6pwk","key_id":"key_kwyp31kewrtb07dv","kind":"refund","amount":"0.1","delta":"0.1","ref":"task_01m89h01fm3y1fp7d8s2feq0md3svy","reference":null,"reason":"too dark"}', 'too dark', '91732802c1c88d95e1fce704d49f2ef62a08d547d879cec549ca6d603dc6f7fa', '614a6d295e11a6bfc5044355b3875a915169aa56ffbd69331e47a160c5dc954f'),
(15, 1795616149192, 'owner', NULL, '127.0.0.1', 'req_849naw75yefzhkf2gqrx', 'chat.refund', 'chat', 'chat_01m89h03cgb4sa3q7hf2y5vkgykghv', NULL, '{"id":"chat_01m89h03cgb4sa3q7hf2y5vkgykghv:0000000000000000001:refund","at":"2026-11-25T14:15:49.192Z","user_id":"user_c03mgt7waksv6pwk","key_id":"key_kwyp31kewrtb07dv","kind":"refund","amount":"0.0108","delta":"0.0108","ref":"chat_01m89h03cgb4sa3q7hf2y5vkgykghv","reference":null,"reason":"a test"}', 'a test', '614a6d295e11a6bfc5044355b3875a915169aa56ffbd69331e47a160c5dc954f', '0a29d551494e7733673414ac34c8ba250f3144c07b8f5c99b1896770fcba129a'),
(16, 1795616149200, 'owner', NULL, '127.0.0.1', 'req_rvardbpajqc3x62bdycx', 'audit.create', 'audit', 'audit_rwga5z4tv1r34rn4', NULL, '{"id":"audit_rwga5z4tv1r34rn4"}', NULL, '0a29d551494e7733673414ac34c8ba250f3144c07b8f5c99b1896770fcba129a', '91abb858ea5de27601a9e1c815f375c0f9933af9bdb56cca1146956b72010f66'),
(17, 1795616149203, 'owner', NULL, '127.0.0.1', 'req_cmyarzgvy60dwx1znr2x', 'channel.create', 'channel', 'stored', NULL, '{"name":"stored","kind":"sandbox","source":"database","shadowed":false,"base_url":null,"models":[{"name":"imagen-4.0-partner","upstream":"imagen-4.0-partner","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[],"paused":false,"created_at":"2026-11-25T14:15:49.203Z","updated_at":"2026-11-25T14:15:49.203Z","version":1}', NULL, '91abb858ea5de27601a9e1c815f375c0f9933af9bdb56cca1146956b72010f66', '8468476535365f51e4ed28742e9df79cd488c1c2f161833a0f302593c9f15692'),
(18, 1795616149220, 'owner', NULL, '127.0.0.1', 'req_c7cd0ktasfkypp0xbevt', 'price.create', 'price', 'imagen-4.0-partner', NULL, '{"model":"imagen-4.0-partner","source":"database","shadowed":false,"per_image":"0.3","version":1}', NULL, '8468476535365f51e4ed28742e9df79cd488c1c2f161833a0f302593c9f15692', 'bd475236513135748ad14de2c4edb561a19eb9bc796d1e44aad8f1770da46f86'),
(19, 1795616149223, 'owner', NULL, '127.0.0.1', 'req_n0mn1g3j27h8pjby5hrq', 'channel.pause', 'channel', 'broken', '{"name":"broken","kind":"openai","source":"file","shadowed":false,"base_url":"http://127.0.0.1:9/v1","models":[{"name":"gpt-5","upstream":"gpt-5","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[{"fingerprint":"91e26f462ba6ae7d","hint":null,"origin":"file"}],"paused":false,"created_at":null,"updated_at":null,"version":1}', '{"name":"broken","kind":"openai","source":"file","shadowed":false,"base_url":"http://127.0.0.1:9/v1","models":[{"name":"gpt-5","upstream":"gpt-5","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[{"fingerprint":"91e26f462ba6ae7d","hint":null,"origin":"file"}],"paused":true,"created_at":null,"updated_at":null,"version":1}', NULL, 'bd475236513135748ad14de2c4edb561a19eb9bc796d1e44aad8f1770da46f86', '5039abef78a5bab32e9df310d7d442db23fb10bcf0546b03461277d6dd5c5ba0'),
(20, 1795616149226, 'owner', NULL, '127.0.0.1', 'req_px9t7ncbnwn611r3wdb6', 'budget.create', 'budget', 'bud_z7t19dj60g37nskr', NULL, '{"id":"bud_z7t19dj60g37nskr","user_id":"user_c03mgt7waksv6pwk","key_id":null,"amount":"100","period":"month","mode":"hard"}', NULL, '5039abef78a5bab32e9df310d7d442db23fb10bcf0546b03461277d6dd5c5ba0', '32a4af7654423c16b8b7b516b2b3bab87eb723a6df4d38911cb0a911deb4ec71'),
(21, 1795616149229, 'owner', NULL, '127.0.0.1', 'req_a5ff8xr5nxebp9185048', 'budget.create', 'budget', 'bud_qct5e90ejxk611rt', NULL, '{"id":"bud_qct5e90ejxk611rt","user_id":null,"key_id":"key_kwyp31kewrtb07dv","amount":"50","period":"day","mode":"soft"}', NULL, '32a4af7654423c16b8b7b516b2b3bab87eb723a6df4d38911cb0a911deb4ec71', '00a0f66893632d7958474ac2cc79084d2787f2eae31427d0e0d9ebf2ebb0d4f7'),
(22, 1795616149236, 'user:user_c03mgt7waksv6pwk', NULL, '127.0.0.1', 'req_g03763h6mhq2jryg2hkd', 'key.create', 'key', 'key_c9m5096xf8rw7sz4', NULL, '{"id":"key_c9m5096xf8rw7sz4","name":"child","user_id":"user_c03mgt7waksv6pwk","hint":"sk-KC1xvUov","quota":"0.5","rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T14:15:49.236Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1,"parent_key_id":"key_kwyp31kewrtb07dv"}', NULL, '00a0f66893632d7958474ac2cc79084d2787f2eae31427d0e0d9ebf2ebb0d4f7', '7e805e763a852a647a1b53f4a7f4c7009cb4f829993091dd2e6e0526acf74693'),
(23, 1795616149240, 'owner', NULL, '127.0.0.1', 'req_0r3fhaypcvyejawkgbxd', 'alert.create', 'alert', 'alert_vjxdme1203n9t74n', NULL, '{"id":"alert_vjxdme1203n9t74n","on":"low_balance","threshold":"0.5","url":"http://127.0.0.1:41039/alert","enabled":true,"created_at":"2026-11-25T14:15:49.240Z","version":1}', NULL, '7e805e763a852a647a1b53f4a7f4c7009cb4f829993091dd2e6e0526acf74693', '3ac60a0a59b0703da009209ea3384878c16dc95bbafa7d34ac374c6edf334f74');
DELETE FROM admin_links;
DELETE FROM admin_sessions;
DELETE FROM admin_sign_in_failures;
DELETE FROM admin_tokens;
INSERT INTO admin_tokens (id, name, scopes, hash, hint, created_at, expires_at, last_used_at, version) VALUES
('tok_8hegrtt5xbj8263b', 'reports', '["users:read"]', '71c66c82b725e1c05e4bf5da7ca1f20070d1c302283ab8c4bf65b535f2eb7225', 'adm_9ObXNTzm', 1795616149139, NULL, NULL, 1);
DELETE FROM admin_writes;
DELETE FROM admins;
INSERT INTO admins (id, name, role, password, disabled, created_at, last_sign_in_at, version) VALUES
('admin_kyy7ww5874qq3swp', 'ada', 'finance', NULL, 0, 1795616149153, NULL, 1);
DELETE FROM alert_deliveries;
DELETE FROM alert_states;
DELETE FROM alerts;
INSERT INTO alerts (id, kind, threshold, url, enabled, secret, created_at, version) VALUES
('alert_vjxdme1203n9t74n', 'low_balance', 500000000, 'http://127.0.0.1:41039/alert', 1, 'whsec_EFxliH0HkSTFd0z+QvC1pdf9N6oH2TE6+cSBURotr4M=', 1795616149240, 1);
DELETE FROM attempts;
INSERT INTO attempts (task_id, number, channel, fence, queued, external_id, key_print, ticket, ticket_at, adjustments, started_at, ended_at, outcome, error) VALUES
('task_01m89h01fm3y1fp7d8s2feq0md3svy', 1, 'main', 1, 0, 'tollgate-7h7axqskm89zkkxw', NULL, NULL, NULL, NULL, 1795616146941, 1795616147324, 'done', NULL),
('task_01m89h01yab1tkjvek75cpm1ccja04', 1, 'main', 1, 0, 'tollgate-1mhw6a450b902bv7', NULL, NULL, NULL, NULL, 1795616147408, 1795616147720, 'partial', 'the prompt asks the sandbox for 1 images only ([[sandbox:partial=K]])'),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 1, 'main', 1, 0, 'tollgate-j7frdvpdkwrwdmqn', NULL, NULL, NULL, NULL, 1795616147740, 1795616147742, 'failed', 'the sandbox was told to fail ([[sandbox:fail]])'),
('task_01m89h02agkp9mxy3qr6n9vjazx3jd', 1, 'main', 1, 0, 'tollgate-vp0gchfdvtsp891k', NULL, NULL, NULL, NULL, 1795616147808, 1795616147811, 'failed', 'the sandbox was told to fail this attempt, number 1 ([[sandbox:fail=N]])'),
('task_01m89h02agkp9mxy3qr6n9vjazx3jd', 2, 'main', 2, 0, 'tollgate-7vdqpjgy7wxkhqhn', NULL, NULL, NULL, NULL, 1795616148041, 1795616148372, 'done', NULL),
('task_01m89h02x740bg9s83kh7ztrv1vg4z', 1, 'main', 1, 0, 'tollgate-4mzjgprqyjh3ac91', NULL, NULL, NULL, NULL, 1795616148401, 1795616148428, 'done', NULL),
('task_01m89h02xag8f6m5f32ee8hp7gp0yg', 1, 'main', 1, 0, 'tollgate-nynxxxbz0b2av1eb', NULL, NULL, NULL, NULL, 1795616148400, 1795616148788, 'done', NULL),
('task_01m89h03r0zcbh4dskje9zwgcnxyxe', 1, 'main', 1, 0, 'tollgate-mhqmjyhd7scg2493', NULL, NULL, NULL, NULL, 1795616149256, 1795616149655, 'done', NULL),
('task_01m89h0a9ay3e29jpbebyxx57srbn3', 1, 'main', 1, 0, 'tollgate-ymespz2m57tg2308', NULL, NULL, NULL, NULL, 1795616155954, NULL, NULL, NULL),
('task_01m89h0a9g3jxq76xcte1v72zdcp66', 1, 'main', 1, 0, 'tollgate-a83fdzbwctfa6j5f', NULL, NULL, NULL, NULL, 1795616155967, NULL, NULL, NULL);
DELETE FROM audits;
INSERT INTO audits (id, started_at, ended_at, violations, progress) VALUES
('audit_rwga5z4tv1r34rn4', 1795616149200, 1795616149212, '[]', 0);
DELETE FROM budgets;
INSERT INTO budgets (id, owner_id, amount, period, hard, spent, period_start, created_at, version) VALUES
('bud_z7t19dj60g37nskr', 'user_c03mgt7waksv6pwk', 100000000000, 'month', 1, 1510800000, 1793491200000, 1795616149226, 1),
('bud_qct5e90ejxk611rt', 'key_kwyp31kewrtb07dv', 50000000000, 'day', 0, 1510800000, 1795564800000, 1795616149229, 1);
DELETE FROM callback_tries;
INSERT INTO callback_tries (task_id, number, at, took_ms, status, error) VALUES
('task_01m89h01fm3y1fp7d8s2feq0md3svy', 1, 1795616147363, 10, 200, NULL),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 1, 1795616147746, 1, 500, NULL),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 2, 1795616152763, 2, 500, NULL),
('task_01m89h0a9qwkk9zeaadcrza8e5n4qb', 1, 1795616156007, 4, 200, NULL);
DELETE FROM callbacks;
INSERT INTO callbacks (task_id, key_id, url, state, due_at, owner, attempts, first_at, ended_at, receiver, user_id) VALUES
('task_01m89h01fm3y1fp7d8s2feq0md3svy', 'key_kwyp31kewrtb07dv', 'http://127.0.0.1:41039/ok', 'delivered', 1795616207361, NULL, 1, 1795616147324, 1795616147373, 'http://127.0.0.1:41039', 'user_c03mgt7waksv6pwk'),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 'key_kwyp31kewrtb07dv', 'http://127.0.0.1:41039/fail', 'waiting', 1795616182766, NULL, 2, 1795616147742, NULL, 'http://127.0.0.1:41039', 'user_c03mgt7waksv6pwk'),
('task_01m89h0a9qwkk9zeaadcrza8e5n4qb', 'key_kwyp31kewrtb07dv', 'http://127.0.0.1:41039/ok', 'delivered', 1795616215996, NULL, 1, 1795616155988, 1795616156011, 'http://127.0.0.1:41039', 'user_c03mgt7waksv6pwk');
DELETE FROM charges;
INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, units_settled, settled, released, opened_at, closed_at, seal, refunded) VALUES
('task_01m89h01fm3y1fp7d8s2feq0md3svy', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795616146932, 1795616147324, 8870784673690880604, 100000000),
('task_01m89h01yab1tkjvek75cpm1ccja04', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 2, 800000000, 1, 400000000, 400000000, 1795616147402, 1795616147720, 8299432269648076092, 0),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795616147731, 1795616147742, -1845043611828094408, 0),
('task_01m89h02agkp9mxy3qr6n9vjazx3jd', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795616147792, 1795616148372, -1557298843610329717, 0),
('task_01m89h02x740bg9s83kh7ztrv1vg4z', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'native-v3', 200000000, 1000, 5, 1000000, 5, 1000000, 0, 1795616148391, 1795616148428, 8970757001585739883, 0),
('task_01m89h02xag8f6m5f32ee8hp7gp0yg', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795616148394, 1795616148788, -5221410982177146987, 0),
('task_01m89h03r0zcbh4dskje9zwgcnxyxe', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795616149248, 1795616149655, 2227689485043040507, 0),
('task_01m89h0a9ay3e29jpbebyxx57srbn3', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795616155946, NULL, 4183890179376397122, 0),
('task_01m89h0a9g3jxq76xcte1v72zdcp66', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795616155952, NULL, 3284078379409416116, 0),
('task_01m89h0a9qwkk9zeaadcrza8e5n4qb', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795616155959, 1795616155988, -685715975014677020, 0),
('task_01m89h0aa9jgvtpnvhvk7ytsv76nxq', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795616155977, NULL, 5860349117926033469, 0);
DELETE FROM chats;
INSERT INTO chats (id, user_id, key_id, model, format, streamed, request_id, input_price, cached_input_price, cache_write_price, output_price, reasoning_price, input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven, outcome, channel, upstream_model, attempts, node, opened_at, closed_at, seal, debt, clamped, parts_cost, parts, refunded, dropped) VALUES
('chat_01m89h03bs76bahprxwacmt4fck83d', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-5', 'chat-completions', 0, 'req_nbjqdgjsj8k78g74trtm', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795616148853, 1795616148857, -2549457865611928455, 0, 0, 0, '', 0, NULL),
('chat_01m89h03cgb4sa3q7hf2y5vkgykghv', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-5', 'chat-completions', 1, 'req_rh39c99wk6hmnge7n5sw', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795616148876, 1795616148880, -8010305709475596816, 0, 0, 0, '', 10800000, NULL),
('chat_01m89h03djw4bc0a6zpe6gzc029614', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'gpt-5', 'chat-completions', 0, 'req_qg8wv5gm3t1481xj1vvk', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795616148912, 1795616148914, -3193220079855920857, 0, 0, 0, '', 0, NULL),
('chat_01m89h03eb2eb4gaqbx2zvdh5t978s', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'gpt-5', 'chat-completions', 1, 'req_ys3d5a0npd6fxjhd5z99', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795616148936, 1795616148939, 5325381783051010540, 0, 0, 0, '', 0, NULL),
('chat_01m89h03m542zxbqp9pc2rdm7x93g0', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'gpt-5', 'chat-completions', 0, 'req_nbekspvz929qtkqr38aw', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 'failed', NULL, NULL, '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"}]', NULL, 1795616148961, 1795616149125, 3205532553050558406, 0, 0, 0, '', 0, NULL);
DELETE FROM configuration;
INSERT INTO configuration (kind, name, body, created_at, updated_at, deleted_at, version) VALUES
('channel', 'stored', '{"models":["imagen-4.0-partner"],"kind":"sandbox","api_keys":[]}', 1795616149203, 1795616149203, NULL, 1),
('pause', 'broken', '{"until":null}', 1795616149223, 1795616149223, NULL, 1),
('price', 'imagen-4.0-partner', '{"per_image":"0.3"}', 1795616149220, 1795616149220, NULL, 1);
DELETE FROM grants;
DELETE FROM idempotency;
INSERT INTO idempotency (user_id, key, fingerprint, task_id, receipt, created_at) VALUES
('user_c03mgt7waksv6pwk', 'first', 'd3bff525618e2981b183fefdcc0622887fb1c28f6b64b4aa653075a847dff0a8', 'task_01m89h01fm3y1fp7d8s2feq0md3svy', '{"code":200,"data":[{"status":"submitted","task_id":"task_01m89h01fm3y1fp7d8s2feq0md3svy"}]}', 1795616146932);
DELETE FROM leader;
INSERT INTO leader (name, node, until) VALUES
('leader', '', 0);
DELETE FROM ledger;
INSERT INTO ledger (ref, kind, user_id, key_id, amount, note, at, reference) VALUES
('chat_01m89h03cgb4sa3q7hf2y5vkgykghv:0000000000000000001', 'refund', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 10800000, 'a test', 1795616149192, NULL),
('credit_0g9wmx3q1gws7gfs', 'credit', 'user_57qeyj3fhajasttn', NULL, 1000000000, 'opening balance', 1795616146694, NULL),
('credit_66wabb9pftv87xfa', 'credit', 'user_c03mgt7waksv6pwk', NULL, 10000000000, 'opening balance', 1795616146616, NULL),
('credit_h53px7htkat1vkc0', 'credit', 'user_c03mgt7waksv6pwk', NULL, 500000000, 'goodwill', 1795616149163, 'payment-1'),
('credit_h9rnwvw65hjxv9ws', 'credit', 'user_c03mgt7waksv6pwk', NULL, 2500000000, 'a gift', 1795616146908, NULL),
('key_c9m5096xf8rw7sz4', 'quota', 'user_c03mgt7waksv6pwk', 'key_c9m5096xf8rw7sz4', 500000000, NULL, 1795616149236, NULL),
('key_kwyp31kewrtb07dv', 'quota', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 5000000000, NULL, 1795616146742, NULL),
('key_kwyp31kewrtb07dv:0000000000000000002', 'quota', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 4500000000, NULL, 1795616149236, NULL),
('task_01m89h01fm3y1fp7d8s2feq0md3svy', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616146932, NULL),
('task_01m89h01fm3y1fp7d8s2feq0md3svy', 'settle', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616147324, NULL),
('task_01m89h01fm3y1fp7d8s2feq0md3svy:0000000000000000001', 'refund', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 100000000, 'too dark', 1795616149180, NULL),
('task_01m89h01yab1tkjvek75cpm1ccja04', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 800000000, NULL, 1795616147402, NULL),
('task_01m89h01yab1tkjvek75cpm1ccja04', 'release', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616147720, NULL),
('task_01m89h01yab1tkjvek75cpm1ccja04', 'settle', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616147720, NULL),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616147731, NULL),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 'release', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616147742, NULL),
('task_01m89h02agkp9mxy3qr6n9vjazx3jd', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616147792, NULL),
('task_01m89h02agkp9mxy3qr6n9vjazx3jd', 'settle', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616148372, NULL),
('task_01m89h02x740bg9s83kh7ztrv1vg4z', 'hold', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 1000000, NULL, 1795616148391, NULL),
('task_01m89h02x740bg9s83kh7ztrv1vg4z', 'settle', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 1000000, NULL, 1795616148428, NULL),
('task_01m89h02xag8f6m5f32ee8hp7gp0yg', 'hold', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 400000000, NULL, 1795616148394, NULL),
('task_01m89h02xag8f6m5f32ee8hp7gp0yg', 'settle', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 400000000, NULL, 1795616148788, NULL),
('task_01m89h03r0zcbh4dskje9zwgcnxyxe', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616149248, NULL),
('task_01m89h03r0zcbh4dskje9zwgcnxyxe', 'settle', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616149655, NULL),
('task_01m89h0a9ay3e29jpbebyxx57srbn3', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616155946, NULL),
('task_01m89h0a9g3jxq76xcte1v72zdcp66', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616155952, NULL),
('task_01m89h0a9qwkk9zeaadcrza8e5n4qb', 'hold', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616155959, NULL),
('task_01m89h0a9qwkk9zeaadcrza8e5n4qb', 'release', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 400000000, NULL, 1795616155988, NULL),
('task_01m89h0aa9jgvtpnvhvk7ytsv76nxq', 'hold', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 400000000, NULL, 1795616155977, NULL),
('user_kq4y63834skb4552', 'unlimited', 'user_kq4y63834skb4552', NULL, 0, NULL, 1795616146656, NULL);
DELETE FROM meta;
INSERT INTO meta (name, value) VALUES
('access_version', 14),
('chats_forgotten', 0),
('admin_event_seq', 23),
('config_version', 3),
('tail_watched_until', 0),
('alerts_checked_at', 0),
('schema_version', 23),
('oldest_compatible', 13);
DELETE FROM oidc_identities;
DELETE FROM oidc_sign_ins;
DELETE FROM open_circuits;
DELETE FROM portal_sessions;
DELETE FROM reconciliations;
DELETE FROM tail_events;
DELETE FROM tasks;
INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, started_at, ended_at, deadline_at, due_at, owner, fence, failed_attempts, job, adjustments, shown, callback_url, queued_attempt, result, error_code, error_message, cost, request_id, refunded, trace_context, polled_at) VALUES
('task_01m89h01fm3y1fp7d8s2feq0md3svy', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795616146932, 1795616146937, 1795616147324, 1795616746932, 1795616176937, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:41039/ok', NULL, '{"files":[{"name":"1nggfrkeg86whf3smvcc6kemp932mzfrr.png","expires_at":1795702547,"bytes":125907}]}', NULL, NULL, 400000000, 'req_nm1h04hrhtb8hydmbzav', 100000000, NULL, NULL),
('task_01m89h01yab1tkjvek75cpm1ccja04', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795616147402, 1795616147405, 1795616147720, 1795616747402, 1795616177405, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:partial=1]] two mills","n":2,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1nggfrkae277f6fjb6q8w36hdjwss1nv8.png","expires_at":1795702547,"bytes":131142}],"adjustments":[{"field":"n","asked":2,"used":1,"why":"the provider delivered fewer images; only these are charged"}]}', NULL, NULL, 400000000, 'req_wcmj55fxmmfwz29hew63', 0, NULL, NULL),
('task_01m89h028kebb3nd2k3t1arjakaz0e', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 3, 0, 1795616147731, 1795616147737, 1795616147742, 1795616747731, 1795616177737, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail]]","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:41039/fail', NULL, NULL, 'provider_error', 'the sandbox was told to fail ([[sandbox:fail]])', 0, 'req_6kpt1gpby85b5a3ga4aq', 0, NULL, NULL),
('task_01m89h02agkp9mxy3qr6n9vjazx3jd', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795616147792, 1795616147796, 1795616148372, 1795616747792, 1795616178013, NULL, 2, 1, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail=1]] a mill in the end","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1nggfrmar0kpn8djxmmkh1n2yve0f4jta.png","expires_at":1795702548,"bytes":153271}]}', NULL, NULL, 400000000, 'req_aqx9pw935dc6nwkyfa7f', 0, NULL, NULL),
('task_01m89h02x740bg9s83kh7ztrv1vg4z', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'speech', 'native-v3', 'native-v3', 2, 100, 1795616148391, 1795616148394, 1795616148428, 1795616448391, 1795616178394, NULL, 1, 0, '{"model":"native-v3","family":"native-v3","text":"hello","voice":"alloy"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1nggfrmv6bhtbtpfs5va20m8vmhw5m7n1.wav","expires_at":1795702548,"bytes":28618}]}', NULL, NULL, 1000000, 'req_nyq5bsyhf95fv663xh6w', 0, NULL, NULL),
('task_01m89h02xag8f6m5f32ee8hp7gp0yg', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795616148394, 1795616148394, 1795616148788, 1795616748394, 1795616178394, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill for bob","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1nggfrmsvn5r1e5y466hn95shxf13wffh.png","expires_at":1795702548,"bytes":210857}]}', NULL, NULL, 400000000, 'req_61980ndze415xrdcv1kg', 0, NULL, NULL),
('task_01m89h03r0zcbh4dskje9zwgcnxyxe', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795616149248, 1795616149251, 1795616149655, 1795616749248, 1795616179251, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"after all that","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1nggfrnh43bc7q7kp4q25yv7kkfervdw8.png","expires_at":1795702549,"bytes":242000}]}', NULL, NULL, 400000000, 'req_swsb5vb0xjt69taf57ym', 0, NULL, NULL),
('task_01m89h0a9ay3e29jpbebyxx57srbn3', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 1, 0, 1795616155946, 1795616155950, NULL, 4102444800000, 1795616185950, 'node_qr4x56sntavss9mb', 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:41039/ok', NULL, NULL, NULL, NULL, 0, 'req_4s8jp9mv4cn8nfmw5r4c', 0, NULL, NULL),
('task_01m89h0a9g3jxq76xcte1v72zdcp66', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 1, 0, 1795616155952, 1795616155956, NULL, 4102444800000, 1795616185956, 'node_qr4x56sntavss9mb', 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:41039/ok', NULL, NULL, NULL, NULL, 0, 'req_0mb48dn0yk8jwe5mhc6p', 0, NULL, NULL),
('task_01m89h0a9qwkk9zeaadcrza8e5n4qb', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'image', 'gpt-image-2', 'gpt-image-2-official', 4, 0, 1795616155959, NULL, 1795616155988, 1795616755959, 1795616155959, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:41039/ok', NULL, NULL, 'cancelled', 'cancelled by its user', 0, 'req_va9b3f91bgwz3t11avrx', 0, NULL, NULL),
('task_01m89h0aa9jgvtpnvhvk7ytsv76nxq', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795616155977, NULL, NULL, 4102444800000, 1795616155977, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, NULL, NULL, NULL, 0, 'req_4wjpmfqa4sg280ay78k5', 0, NULL, NULL);
DELETE FROM upload_bytes;
DELETE FROM usage_daily;
INSERT INTO usage_daily (day, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed) VALUES
(1795564800000, 'gpt-5', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', '', 0, 1, 0, 0, 0, 1),
(1795564800000, 'gpt-5', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'main', 10800000, 2, 36, 0, 0, 0),
(1795564800000, 'gpt-5', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'main', 21600000, 2, 36, 0, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', '', 0, 1, 0, 0, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'main', 1500000000, 5, 0, 4, 0, 1),
(1795564800000, 'gpt-image-2-official', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'main', 400000000, 1, 0, 1, 0, 0),
(1795564800000, 'native-v3', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'main', 1000000, 1, 0, 0, 0, 0);
DELETE FROM usage_hourly;
INSERT INTO usage_hourly (hour, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed) VALUES
(1795615200000, 'gpt-5', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', '', 0, 1, 0, 0, 0, 1),
(1795615200000, 'gpt-5', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'main', 10800000, 2, 36, 0, 0, 0),
(1795615200000, 'gpt-5', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'main', 21600000, 2, 36, 0, 0, 0),
(1795615200000, 'gpt-image-2-official', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', '', 0, 1, 0, 0, 0, 0),
(1795615200000, 'gpt-image-2-official', 'user_c03mgt7waksv6pwk', 'key_kwyp31kewrtb07dv', 'main', 1500000000, 5, 0, 4, 0, 1),
(1795615200000, 'gpt-image-2-official', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'main', 400000000, 1, 0, 1, 0, 0),
(1795615200000, 'native-v3', 'user_kq4y63834skb4552', 'key_k2n6q85prf0m3qgr', 'main', 1000000, 1, 0, 0, 0, 0);
DELETE FROM usage_pending;
DELETE FROM webhook_secrets;
INSERT INTO webhook_secrets (key_id, secret, created_at) VALUES
('key_kwyp31kewrtb07dv', 'whsec_uC0ZLBYuzBNUn4x9JfXOfmMy62yekrHJRU8IcYiG918=', 1795616147363);
