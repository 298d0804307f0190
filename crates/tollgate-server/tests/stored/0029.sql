-- Schema 29, as the program of commit b7f26ea left it on SQLite at a kill -9. Only the deadlines of unfinished
-- tasks were moved, to the year 2100.
-- key of ann: sk-88DjLxJwuXPfMcWpNGgprCacTil49UzTWhITaqxeO7sspxyT
-- key of bob: sk-VwGqB4bXStBad1jdng7iFRVoCgXjE3xOzYMua9g325dXBsL9
-- a finished task of ann: task_01m8a7460fr6w16dx2vjns8bwmfvg0
INSERT INTO users (id, name, unlimited, balance, held, used, rpm, tpm, max_concurrency, disabled_at, created_at, version, budgets) VALUES
('user_rhwdk46wxrp7wp6m', 'ann', 0, 11489200000, 800000000, 1510800000, NULL, NULL, NULL, NULL, 1795639351181, 1, 1),
('user_h6a9f97543a9cqvf', 'bob', 1, -422600000, 400000000, 422600000, NULL, NULL, NULL, NULL, 1795639351196, 1, 0),
('user_6ms3jmae6789fqwx', 'eve', 0, 1000000000, 0, 0, NULL, NULL, NULL, 1795639351285, 1795639351211, 2, 0);
INSERT INTO keys (id, user_id, label, hash, quota, held, used, rpm, tpm, max_concurrency, models, bare_envelope, expires_at, revoked_at, created_at, version, hint, previous_hash, previous_valid_until, budgets, parent_key_id, trace_content) VALUES
('key_evpr4h5ymam9r0jk', 'user_rhwdk46wxrp7wp6m', 'laptop', 'c01fbc4db64737067f9c6bff472445525f02d8bedf73af82d560b5bb8819f74f', 4500000000, 800000000, 1510800000, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1795639351230, 2, 'sk-88DjLxJw', NULL, NULL, 1, NULL, 0),
('key_a0j5rq7fhxwcrtr7', 'user_h6a9f97543a9cqvf', '', '81860e942f7abfce8a02adb4fc06d3a1c81fd590b43a6a94f20b311aa07d1245', NULL, 400000000, 422600000, 600, NULL, 8, '["gpt-5","gpt-image-2-official","native-v3"]', 0, 4070908800000, NULL, 1795639351245, 2, 'sk-VwGqB4bX', '80a6a381a189a3518303468e7af0ac7373861e48d1289b140bcf0319b8b86a88', 1795639952375, 0, NULL, 0),
('key_nvw0vzg3tb3enhxd', 'user_6ms3jmae6789fqwx', '', '2b0f79d0df625f8f69ff2b32354c46e820c89744fec8f7236515a231fc3b0d2f', NULL, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, 1795639351274, 1795639351259, 2, 'sk-4uWYS4C7', NULL, NULL, 0, NULL, 0),
('key_cyhezkxcj7vr2k9f', 'user_rhwdk46wxrp7wp6m', 'child', 'b4c3a3871296ca3723bb4da7efab6420b553c8946dcfe975117629d704001185', 500000000, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1795639352403, 1, 'sk-fRpVTXf9', NULL, NULL, 0, 'key_evpr4h5ymam9r0jk', 0);
INSERT INTO nodes (id, alive_until, version, started_at, last_seen_at, config_version, config_error, schema_version, clock_offset, settings, not_ready) VALUES
('node_3sb8pdkr4mpa0etr', 1795639388668, '0.2.0', 1795639358662, 1795639358673, 3, NULL, 29, NULL, '{"currency":"USD","fingerprint":"16e2caa101dcedd1"}', NULL),
('node_db8mgjngch2kn92n', 1795639358590, '0.2.0', 1795639351151, 1795639357806, 3, NULL, 29, NULL, '{"currency":"USD","fingerprint":"dc8aa7968f2595c2"}', NULL);
DELETE FROM access_changes;
INSERT INTO access_changes (version, user_id, key_id) VALUES
(2, 'user_rhwdk46wxrp7wp6m', NULL),
(3, 'user_h6a9f97543a9cqvf', NULL),
(4, 'user_6ms3jmae6789fqwx', NULL),
(5, NULL, 'key_evpr4h5ymam9r0jk'),
(6, NULL, 'key_a0j5rq7fhxwcrtr7'),
(7, NULL, 'key_nvw0vzg3tb3enhxd'),
(8, NULL, 'key_nvw0vzg3tb3enhxd'),
(9, 'user_6ms3jmae6789fqwx', NULL),
(10, NULL, 'key_a0j5rq7fhxwcrtr7'),
(11, 'user_rhwdk46wxrp7wp6m', NULL),
(12, NULL, 'key_evpr4h5ymam9r0jk'),
(13, NULL, 'key_cyhezkxcj7vr2k9f'),
(14, NULL, 'key_evpr4h5ymam9r0jk');
DELETE FROM admin_events;
INSERT INTO admin_events (seq, at, actor, token_id, address, request_id, action, object_type, object_id, before, after, reason, prev_hash, hash) VALUES
(1, 1795639351181, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_rhwdk46wxrp7wp6m', NULL, '{"id":"user_rhwdk46wxrp7wp6m","name":"ann","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:42:31.181Z","version":1,"balance":"10"}', NULL, '0000000000000000000000000000000000000000000000000000000000000000', '03ee1af3ca9a840038c550603eecae161764c0ca53be752e45ac45ca6f9e8b18'),
(2, 1795639351196, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_h6a9f97543a9cqvf', NULL, '{"id":"user_h6a9f97543a9cqvf","name":"bob","unlimited":true,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:42:31.196Z","version":1}', NULL, '03ee1af3ca9a840038c550603eecae161764c0ca53be752e45ac45ca6f9e8b18', '6d25e5015a5329fdca86eeb26e99f4d578d50423b9672a65af94ba9645012f32'),
(3, 1795639351211, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_6ms3jmae6789fqwx', NULL, '{"id":"user_6ms3jmae6789fqwx","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:42:31.211Z","version":1,"balance":"1"}', NULL, '6d25e5015a5329fdca86eeb26e99f4d578d50423b9672a65af94ba9645012f32', '2e06cf4d639e44af1ec6a3d2ddb10913fb36430492b7fe14b41192302c7de03f'),
(4, 1795639351230, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_evpr4h5ymam9r0jk', NULL, '{"id":"key_evpr4h5ymam9r0jk","name":"laptop","user_id":"user_rhwdk46wxrp7wp6m","hint":"sk-88DjLxJw","quota":"5","rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:42:31.230Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', NULL, '2e06cf4d639e44af1ec6a3d2ddb10913fb36430492b7fe14b41192302c7de03f', 'e2ebd714e63b90bfd6dd9a98483b3e3a3b6d027c92b90b124727b1a49cbfa22a'),
(5, 1795639351245, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_a0j5rq7fhxwcrtr7', NULL, '{"id":"key_a0j5rq7fhxwcrtr7","name":"","user_id":"user_h6a9f97543a9cqvf","hint":"sk-j30ayhaC","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T20:42:31.245Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":null,"version":1}', NULL, 'e2ebd714e63b90bfd6dd9a98483b3e3a3b6d027c92b90b124727b1a49cbfa22a', '395f4d681a946b78934e3baf58097c0db87486564c3e116161b772219f71fec1'),
(6, 1795639351259, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_nvw0vzg3tb3enhxd', NULL, '{"id":"key_nvw0vzg3tb3enhxd","name":"","user_id":"user_6ms3jmae6789fqwx","hint":"sk-4uWYS4C7","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:42:31.259Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', NULL, '395f4d681a946b78934e3baf58097c0db87486564c3e116161b772219f71fec1', '33d65523087780d83a19bd888a1cb1e65c6a496452bc1b6bfcb063e264b65ff0'),
(7, 1795639351274, 'cli', NULL, NULL, NULL, 'key.revoke', 'key', 'key_nvw0vzg3tb3enhxd', '{"id":"key_nvw0vzg3tb3enhxd","name":"","user_id":"user_6ms3jmae6789fqwx","hint":"sk-4uWYS4C7","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:42:31.259Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', '{"id":"key_nvw0vzg3tb3enhxd","name":"","user_id":"user_6ms3jmae6789fqwx","hint":"sk-4uWYS4C7","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:42:31.259Z","expires_at":null,"revoked_at":"2026-11-25T20:42:31.274Z","previous_valid_until":null,"version":2}', NULL, '33d65523087780d83a19bd888a1cb1e65c6a496452bc1b6bfcb063e264b65ff0', '6b0a9b0521f9d6a9838c0c03df0f154ace640d68b9ed3e625ea3b77f2779454f'),
(8, 1795639351285, 'cli', NULL, NULL, NULL, 'user.update', 'user', 'user_6ms3jmae6789fqwx', '{"id":"user_6ms3jmae6789fqwx","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:42:31.211Z","version":1}', '{"id":"user_6ms3jmae6789fqwx","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":true,"created_at":"2026-11-25T20:42:31.211Z","version":2}', NULL, '6b0a9b0521f9d6a9838c0c03df0f154ace640d68b9ed3e625ea3b77f2779454f', 'e1358ff726f2b41acee4b015e60244938ec78c1f27f155ee61f1f3da464cacd7'),
(9, 1795639351299, 'cli', NULL, NULL, NULL, 'user.credit', 'user', 'user_rhwdk46wxrp7wp6m', NULL, '{"id":"credit_wy952a0ysvbvggnc:credit","at":"2026-11-25T20:42:31.299Z","user_id":"user_rhwdk46wxrp7wp6m","key_id":null,"kind":"credit","amount":"2.5","delta":"2.5","ref":"credit_wy952a0ysvbvggnc","reference":null,"reason":"a gift"}', 'a gift', 'e1358ff726f2b41acee4b015e60244938ec78c1f27f155ee61f1f3da464cacd7', 'c86fa6b2deeaa061418bdf383dc7a30fb758825ff03eb926decce9d32a7256b2'),
(10, 1795639352366, 'owner', NULL, '127.0.0.1', 'req_9mt2zwre23caf1msmjjy', 'token.create', 'token', 'tok_gqce5wxzs5pg7czt', NULL, '{"id":"tok_gqce5wxzs5pg7czt","name":"reports","scopes":["users:read"],"hint":"adm_KZ06pAym","created_at":"2026-11-25T20:42:32.366Z","expires_at":null,"last_used_at":null,"version":1}', NULL, 'c86fa6b2deeaa061418bdf383dc7a30fb758825ff03eb926decce9d32a7256b2', '49135560807afbf065ac811aa391756f1d1135ec21c571c4cc12e09f1be6b091'),
(11, 1795639352369, 'owner', NULL, '127.0.0.1', 'req_hbp21q04pv22swcsm0nf', 'admin.create', 'admin', 'admin_2js2pqjjwk9npw3w', NULL, '{"id":"admin_2js2pqjjwk9npw3w","name":"ada","role":"finance","disabled":false,"created_at":"2026-11-25T20:42:32.369Z","last_sign_in_at":null,"version":1}', NULL, '49135560807afbf065ac811aa391756f1d1135ec21c571c4cc12e09f1be6b091', '26cd1e62412932c4d089f6f6daca6f7062ca951c77d0c4896c081a832520bdbe'),
(12, 1795639352373, 'owner', NULL, '127.0.0.1', 'req_4bmfb6ncx3qb8d7dpxm4', 'user.credit', 'user', 'user_rhwdk46wxrp7wp6m', NULL, '{"id":"credit_azt9dbk3bkbp0ybb:credit","at":"2026-11-25T20:42:32.373Z","user_id":"user_rhwdk46wxrp7wp6m","key_id":null,"kind":"credit","amount":"0.5","delta":"0.5","ref":"credit_azt9dbk3bkbp0ybb","reference":"payment-1","reason":"goodwill"}', 'goodwill', '26cd1e62412932c4d089f6f6daca6f7062ca951c77d0c4896c081a832520bdbe', '43f2dc6bd1efb54ac0ff66ca5fd2e087dcb33a6926b29be47d78883e786bab6f'),
(13, 1795639352375, 'owner', NULL, '127.0.0.1', 'req_n10wzhr2jrnf75dayw1w', 'key.rotate', 'key', 'key_a0j5rq7fhxwcrtr7', '{"id":"key_a0j5rq7fhxwcrtr7","name":"","user_id":"user_h6a9f97543a9cqvf","hint":"sk-j30ayhaC","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T20:42:31.245Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":null,"version":1}', '{"id":"key_a0j5rq7fhxwcrtr7","name":"","user_id":"user_h6a9f97543a9cqvf","hint":"sk-VwGqB4bX","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T20:42:31.245Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":"2026-11-25T20:52:32.375Z","version":2}', NULL, '43f2dc6bd1efb54ac0ff66ca5fd2e087dcb33a6926b29be47d78883e786bab6f', '65fceff70efed03246f50692f5cb2ec2a6f6bf42c147156e776f991b80ba1cda'),
(14, 1795639352378, 'owner', NULL, '127.0.0.1', 'req_5ve03a6ecv01kp0fjnd3', 'task.refund', 'task', 'task_01m8a7460fr6w16dx2vjns8bwmfvg0', NULL, '{"id":"task_01m8a7460fr6w16dx2vjns8bwmfvg0:0000000000000000001:refund","at":"2026-11-25T20:42:32.378Z","user_id":"user_rhwdk46wxrp7wp6m","key_id":"key_evpr4h5ymam9r0jk","kind":"refund","amount":"0.1","delta":"0.1","ref":"task_01m8a7460fr6w16dx2vjns8bwmfvg0","reference":null,"reason":"too dark"}', 'too dark', '65fceff70efed03246f50692f5cb2ec2a6f6bf42c147156e776f991b80ba1cda', 'fb7151fa9515d53e2e3de69acb67a82d34652ba1db9c7b6609ebb9017daa2994'),
(15, 1795639352383, 'owner', NULL, '127.0.0.1', 'req_mvap191sxk48csz2e0tg', 'chat.refund', 'chat', 'chat_01m8a746vzdvqbhd303fdmawvkcx4f', NULL, '{"id":"chat_01m8a746vzdvqbhd303fdmawvkcx4f:0000000000000000001:refund","at":"2026-11-25T20:42:32.383Z","user_id":"user_rhwdk46wxrp7wp6m","key_id":"key_evpr4h5ymam9r0jk","kind":"refund","amount":"0.0108","delta":"0.0108","ref":"chat_01m8a746vzdvqbhd303fdmawvkcx4f","reference":null,"reason":"a test"}', 'a test', 'fb7151fa9515d53e2e3de69acb67a82d34652ba1db9c7b6609ebb9017daa2994', 'b793a3457d0330a3f07eda48337c49b6b88db1512fabfaacbb18b8e71d765c9d'),
(16, 1795639352385, 'owner', NULL, '127.0.0.1', 'req_hmte1xm1pvpv00s2h3ea', 'audit.create', 'audit', 'audit_a67xhjz7ryn6as2b', NULL, '{"id":"audit_a67xhjz7ryn6as2b"}', NULL, 'b793a3457d0330a3f07eda48337c49b6b88db1512fabfaacbb18b8e71d765c9d', '16cba91b9f733bc75ee3a69c1d1c02161516433015d873450b4e7ef2d60b9969'),
(17, 1795639352387, 'owner', NULL, '127.0.0.1', 'req_4yr8h6npmqp4pdat9ecn', 'channel.create', 'channel', 'stored', NULL, '{"name":"stored","kind":"sandbox","source":"database","shadowed":false,"base_url":null,"models":[{"name":"imagen-4.0-partner","upstream":"imagen-4.0-partner","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[],"paused":false,"created_at":"2026-11-25T20:42:32.387Z","updated_at":"2026-11-25T20:42:32.387Z","version":1}', NULL, '16cba91b9f733bc75ee3a69c1d1c02161516433015d873450b4e7ef2d60b9969', '4d45bdbe5ffb73aae2cdb87c501cbc9bb6b16b25596c946b858ee155b94906ef'),
(18, 1795639352393, 'owner', NULL, '127.0.0.1', 'req_kkqqpc0qjx7y1qszdw7y', 'price.create', 'price', 'imagen-4.0-partner', NULL, '{"model":"imagen-4.0-partner","source":"database","shadowed":false,"per_image":"0.3","version":1}', NULL, '4d45bdbe5ffb73aae2cdb87c501cbc9bb6b16b25596c946b858ee155b94906ef', '1638b866bb9e321b386c8aa91b680e00fade8d7cd5fbd4affea633a1d2bec373'),
(19, 1795639352396, 'owner', NULL, '127.0.0.1', 'req_khrerg9313mxaabxprt8', 'channel.pause', 'channel', 'broken', '{"name":"broken","kind":"openai","source":"file","shadowed":false,"base_url":"http://127.0.0.1:9/v1","models":[{"name":"gpt-5","upstream":"gpt-5","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[{"fingerprint":"91e26f462ba6ae7d","hint":null,"origin":"file"}],"paused":false,"created_at":null,"updated_at":null,"version":1}', '{"name":"broken","kind":"openai","source":"file","shadowed":false,"base_url":"http://127.0.0.1:9/v1","models":[{"name":"gpt-5","upstream":"gpt-5","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[{"fingerprint":"91e26f462ba6ae7d","hint":null,"origin":"file"}],"paused":true,"created_at":null,"updated_at":null,"version":1}', NULL, '1638b866bb9e321b386c8aa91b680e00fade8d7cd5fbd4affea633a1d2bec373', 'eeee9d9e58d27dbcdf95b2b5c46181d47c7c5c8cb8062cec1f219272f1f7ecc7'),
(20, 1795639352399, 'owner', NULL, '127.0.0.1', 'req_ezvk79r1jwfjmyssp21d', 'budget.create', 'budget', 'bud_2ndh9293txrej793', NULL, '{"id":"bud_2ndh9293txrej793","user_id":"user_rhwdk46wxrp7wp6m","key_id":null,"amount":"100","period":"month","mode":"hard"}', NULL, 'eeee9d9e58d27dbcdf95b2b5c46181d47c7c5c8cb8062cec1f219272f1f7ecc7', '177e780898fb36b34345caff07926ac03057d10647faf01f49ddd4bf33a6c466'),
(21, 1795639352401, 'owner', NULL, '127.0.0.1', 'req_m7cfy0yyntmhszq2znmx', 'budget.create', 'budget', 'bud_kb7kcxkxa7m5pz68', NULL, '{"id":"bud_kb7kcxkxa7m5pz68","user_id":null,"key_id":"key_evpr4h5ymam9r0jk","amount":"50","period":"day","mode":"soft"}', NULL, '177e780898fb36b34345caff07926ac03057d10647faf01f49ddd4bf33a6c466', 'b923a484f9768396658563c705356c30bb9e50453335de69d9872d24eccdf695'),
(22, 1795639352403, 'user:user_rhwdk46wxrp7wp6m', NULL, '127.0.0.1', 'req_g61wzkek4nwz5mbabb1b', 'key.create', 'key', 'key_cyhezkxcj7vr2k9f', NULL, '{"id":"key_cyhezkxcj7vr2k9f","name":"child","user_id":"user_rhwdk46wxrp7wp6m","hint":"sk-fRpVTXf9","quota":"0.5","rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:42:32.403Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1,"parent_key_id":"key_evpr4h5ymam9r0jk"}', NULL, 'b923a484f9768396658563c705356c30bb9e50453335de69d9872d24eccdf695', 'b7061f59193e4288fb6d3c2872bb830d7e3e2ed3fc26e6a3665015ef1f1d9c0a'),
(23, 1795639352405, 'owner', NULL, '127.0.0.1', 'req_kk2np5gcwwp9z635wm85', 'alert.create', 'alert', 'alert_c688a8qr900m5yjz', NULL, '{"id":"alert_c688a8qr900m5yjz","on":"low_balance","threshold":"0.5","url":"http://127.0.0.1:37439/alert","enabled":true,"created_at":"2026-11-25T20:42:32.405Z","version":1}', NULL, 'b7061f59193e4288fb6d3c2872bb830d7e3e2ed3fc26e6a3665015ef1f1d9c0a', '9fe89ddc0fb4050cd7aa4cdca6529417473815a1e7881d69e8a9b4388f85b6e5');
DELETE FROM admin_links;
DELETE FROM admin_sessions;
DELETE FROM admin_sign_in_failures;
DELETE FROM admin_tokens;
INSERT INTO admin_tokens (id, name, scopes, hash, hint, created_at, expires_at, last_used_at, version) VALUES
('tok_gqce5wxzs5pg7czt', 'reports', '["users:read"]', '69bb23701865f9941ef585afe5598a42bf2d79e86ceda4b784253f86104f67c6', 'adm_KZ06pAym', 1795639352366, NULL, NULL, 1);
DELETE FROM admin_writes;
DELETE FROM admins;
INSERT INTO admins (id, name, role, password, disabled, created_at, last_sign_in_at, version) VALUES
('admin_2js2pqjjwk9npw3w', 'ada', 'finance', NULL, 0, 1795639352369, NULL, 1);
DELETE FROM alert_deliveries;
DELETE FROM alert_states;
DELETE FROM alerts;
INSERT INTO alerts (id, kind, threshold, url, enabled, secret, created_at, version) VALUES
('alert_c688a8qr900m5yjz', 'low_balance', 500000000, 'http://127.0.0.1:37439/alert', 1, 'whsec_KrtUBx/j1LLDkMqLnFv6rg+HPzbPK465j1/qMd+uVwg=', 1795639352405, 1);
DELETE FROM attempts;
INSERT INTO attempts (task_id, number, channel, fence, queued, external_id, key_print, ticket, ticket_at, adjustments, started_at, ended_at, outcome, error) VALUES
('task_01m8a7460fr6w16dx2vjns8bwmfvg0', 1, 'main', 1, 0, 'tollgate-6wcs7cvv8dxvwqg7', NULL, NULL, NULL, NULL, 1795639351316, 1795639351425, 'done', NULL),
('task_01m8a7465mnqpj3tvtseqrr6w67my0', 1, 'main', 1, 0, 'tollgate-0v8w1nj826pvdte4', NULL, NULL, NULL, NULL, 1795639351480, 1795639351583, 'partial', 'the prompt asks the sandbox for 1 images only ([[sandbox:partial=K]])'),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 1, 'main', 1, 0, 'tollgate-x30nfdgmhwx5hzwp', NULL, NULL, NULL, NULL, 1795639351644, 1795639351645, 'failed', 'the sandbox was told to fail ([[sandbox:fail]])'),
('task_01m8a746chy667h4ge0fjv912rarp5', 1, 'main', 1, 0, 'tollgate-7v7bfmhz6f937v7z', NULL, NULL, NULL, NULL, 1795639351701, 1795639351702, 'failed', 'the sandbox was told to fail this attempt, number 1 ([[sandbox:fail=N]])'),
('task_01m8a746chy667h4ge0fjv912rarp5', 2, 'main', 2, 0, 'tollgate-86xm123055rt2nx6', NULL, NULL, NULL, NULL, 1795639351906, 1795639352010, 'done', NULL),
('task_01m8a746phm4nn7ycfbdt7hvmctm7v', 1, 'main', 1, 0, 'tollgate-270mheq129md4dre', NULL, NULL, NULL, NULL, 1795639352020, 1795639352024, 'done', NULL),
('task_01m8a746pkk3ezzqbqxtsqpav4mfwk', 1, 'main', 1, 0, 'tollgate-698793a5b6xjd65t', NULL, NULL, NULL, NULL, 1795639352023, 1795639352127, 'done', NULL),
('task_01m8a7472q4hbaded0fkj1peg75x2m', 1, 'main', 1, 0, 'tollgate-087xgckywjpdkj3y', NULL, NULL, NULL, NULL, 1795639352409, 1795639352515, 'done', NULL),
('task_01m8a74d6r6cmg3ka08e8n3sjwsnj5', 1, 'main', 1, 0, 'tollgate-p2wsqm9a19tpa7nf', NULL, NULL, NULL, NULL, 1795639358685, NULL, NULL, NULL),
('task_01m8a74d6w7s82smra69286sn56ntj', 1, 'main', 1, 0, 'tollgate-nz2zfa63dbtbmp7n', NULL, NULL, NULL, NULL, 1795639358689, NULL, NULL, NULL);
DELETE FROM audits;
INSERT INTO audits (id, started_at, ended_at, violations, progress) VALUES
('audit_a67xhjz7ryn6as2b', 1795639352385, 1795639352393, '[]', 0);
DELETE FROM budgets;
INSERT INTO budgets (id, owner_id, amount, period, hard, spent, period_start, created_at, version) VALUES
('bud_2ndh9293txrej793', 'user_rhwdk46wxrp7wp6m', 100000000000, 'month', 1, 1510800000, 1793491200000, 1795639352399, 1),
('bud_kb7kcxkxa7m5pz68', 'key_evpr4h5ymam9r0jk', 50000000000, 'day', 0, 1510800000, 1795564800000, 1795639352401, 1);
DELETE FROM callback_tries;
INSERT INTO callback_tries (task_id, number, at, took_ms, status, error) VALUES
('task_01m8a7460fr6w16dx2vjns8bwmfvg0', 1, 1795639351428, 2, 200, NULL),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 1, 1795639351647, 1, 500, NULL),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 2, 1795639356653, 2, 500, NULL),
('task_01m8a74d712cr0dvn8rbd2na08f6tc', 1, 1795639358700, 1, 200, NULL);
DELETE FROM callbacks;
INSERT INTO callbacks (task_id, key_id, url, state, due_at, owner, attempts, first_at, ended_at, receiver, user_id) VALUES
('task_01m8a7460fr6w16dx2vjns8bwmfvg0', 'key_evpr4h5ymam9r0jk', 'http://127.0.0.1:37439/ok', 'delivered', 1795639411427, NULL, 1, 1795639351425, 1795639351430, 'http://127.0.0.1:37439', 'user_rhwdk46wxrp7wp6m'),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 'key_evpr4h5ymam9r0jk', 'http://127.0.0.1:37439/fail', 'waiting', 1795639386655, NULL, 2, 1795639351645, NULL, 'http://127.0.0.1:37439', 'user_rhwdk46wxrp7wp6m'),
('task_01m8a74d712cr0dvn8rbd2na08f6tc', 'key_evpr4h5ymam9r0jk', 'http://127.0.0.1:37439/ok', 'delivered', 1795639418698, NULL, 1, 1795639358695, 1795639358701, 'http://127.0.0.1:37439', 'user_rhwdk46wxrp7wp6m');
DELETE FROM charges;
INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, units_settled, settled, released, opened_at, closed_at, seal, refunded) VALUES
('task_01m8a7460fr6w16dx2vjns8bwmfvg0', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639351311, 1795639351425, -163210992702012052, 100000000),
('task_01m8a7465mnqpj3tvtseqrr6w67my0', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 2, 800000000, 1, 400000000, 400000000, 1795639351476, 1795639351583, -5308769013845182749, 0),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795639351640, 1795639351645, 3786593255871090511, 0),
('task_01m8a746chy667h4ge0fjv912rarp5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639351697, 1795639352010, 6400925920806956466, 0),
('task_01m8a746phm4nn7ycfbdt7hvmctm7v', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'native-v3', 200000000, 1000, 5, 1000000, 5, 1000000, 0, 1795639352017, 1795639352024, -4080999251391962775, 0),
('task_01m8a746pkk3ezzqbqxtsqpav4mfwk', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639352019, 1795639352127, -4555652855071481932, 0),
('task_01m8a7472q4hbaded0fkj1peg75x2m', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639352407, 1795639352515, -66857093166842550, 0),
('task_01m8a74d6r6cmg3ka08e8n3sjwsnj5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795639358680, NULL, -2053838267277860200, 0),
('task_01m8a74d6w7s82smra69286sn56ntj', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795639358684, NULL, -3089665043569392679, 0),
('task_01m8a74d712cr0dvn8rbd2na08f6tc', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795639358689, 1795639358695, -7252600574457872923, 0),
('task_01m8a74d745qpnpx761pkzs0hcad4n', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795639358692, NULL, -4939806943878187778, 0);
DELETE FROM chats;
INSERT INTO chats (id, user_id, key_id, model, format, streamed, request_id, input_price, cached_input_price, cache_write_price, output_price, reasoning_price, input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven, outcome, channel, upstream_model, attempts, node, opened_at, closed_at, seal, debt, clamped, parts_cost, parts, refunded, dropped) VALUES
('chat_01m8a746vvk8m5qf4q2gactqacvk0k', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-5', 'chat-completions', 0, 'req_9cga59kgmqxxdjck4f5q', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639352184, 1795639352187, 5413555507211307630, 0, 0, 0, '', 0, NULL),
('chat_01m8a746vzdvqbhd303fdmawvkcx4f', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-5', 'chat-completions', 1, 'req_3n4zekdcckpej2dx8m74', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639352189, 1795639352191, 1002141733934574590, 0, 0, 0, '', 10800000, NULL),
('chat_01m8a746w3fzjg58ax8zegzxbjm6nx', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'gpt-5', 'chat-completions', 0, 'req_68bw8j27mzrwk8sat7px', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639352193, 1795639352195, -7148735378883595992, 0, 0, 0, '', 0, NULL),
('chat_01m8a746w7qa66x3x4hbpdbjccbe2s', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'gpt-5', 'chat-completions', 1, 'req_7e5t63pychdj3avd7206', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639352197, 1795639352199, 5773339133330482419, 0, 0, 0, '', 0, NULL),
('chat_01m8a74718xpqxstrcczchvherktm6', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'gpt-5', 'chat-completions', 0, 'req_9td1s8zjrx9s2efr3ytd', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 'failed', NULL, NULL, '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"}]', NULL, 1795639352200, 1795639352360, -7767376924307535626, 0, 0, 0, '', 0, NULL);
DELETE FROM configuration;
INSERT INTO configuration (kind, name, body, created_at, updated_at, deleted_at, version) VALUES
('channel', 'stored', '{"models":["imagen-4.0-partner"],"kind":"sandbox","api_keys":[]}', 1795639352387, 1795639352387, NULL, 1),
('pause', 'broken', '{"until":null}', 1795639352396, 1795639352396, NULL, 1),
('price', 'imagen-4.0-partner', '{"per_image":"0.3"}', 1795639352393, 1795639352393, NULL, 1);
DELETE FROM grants;
DELETE FROM idempotency;
INSERT INTO idempotency (user_id, key, fingerprint, task_id, receipt, created_at) VALUES
('user_rhwdk46wxrp7wp6m', 'first', '30adac3a2fea3277658a1b7a65004f301a9dfc44d5f37df0c8dbda9da664837e', 'task_01m8a7460fr6w16dx2vjns8bwmfvg0', '{"code":200,"data":[{"status":"submitted","task_id":"task_01m8a7460fr6w16dx2vjns8bwmfvg0"}]}', 1795639351311);
DELETE FROM leader;
INSERT INTO leader (name, node, until) VALUES
('leader', '', 0);
DELETE FROM ledger;
INSERT INTO ledger (ref, kind, user_id, key_id, amount, note, at, reference) VALUES
('chat_01m8a746vzdvqbhd303fdmawvkcx4f:0000000000000000001', 'refund', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 10800000, 'a test', 1795639352383, NULL),
('credit_azt9dbk3bkbp0ybb', 'credit', 'user_rhwdk46wxrp7wp6m', NULL, 500000000, 'goodwill', 1795639352373, 'payment-1'),
('credit_fgxn2k1edcr9n3ps', 'credit', 'user_6ms3jmae6789fqwx', NULL, 1000000000, 'opening balance', 1795639351211, NULL),
('credit_txkpte26e11kgjaj', 'credit', 'user_rhwdk46wxrp7wp6m', NULL, 10000000000, 'opening balance', 1795639351181, NULL),
('credit_wy952a0ysvbvggnc', 'credit', 'user_rhwdk46wxrp7wp6m', NULL, 2500000000, 'a gift', 1795639351299, NULL),
('key_cyhezkxcj7vr2k9f', 'quota', 'user_rhwdk46wxrp7wp6m', 'key_cyhezkxcj7vr2k9f', 500000000, NULL, 1795639352403, NULL),
('key_evpr4h5ymam9r0jk', 'quota', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 5000000000, NULL, 1795639351230, NULL),
('key_evpr4h5ymam9r0jk:0000000000000000002', 'quota', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 4500000000, NULL, 1795639352403, NULL),
('task_01m8a7460fr6w16dx2vjns8bwmfvg0', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639351311, NULL),
('task_01m8a7460fr6w16dx2vjns8bwmfvg0', 'settle', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639351425, NULL),
('task_01m8a7460fr6w16dx2vjns8bwmfvg0:0000000000000000001', 'refund', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 100000000, 'too dark', 1795639352378, NULL),
('task_01m8a7465mnqpj3tvtseqrr6w67my0', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 800000000, NULL, 1795639351476, NULL),
('task_01m8a7465mnqpj3tvtseqrr6w67my0', 'release', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639351583, NULL),
('task_01m8a7465mnqpj3tvtseqrr6w67my0', 'settle', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639351583, NULL),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639351640, NULL),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 'release', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639351645, NULL),
('task_01m8a746chy667h4ge0fjv912rarp5', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639351697, NULL),
('task_01m8a746chy667h4ge0fjv912rarp5', 'settle', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639352010, NULL),
('task_01m8a746phm4nn7ycfbdt7hvmctm7v', 'hold', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 1000000, NULL, 1795639352017, NULL),
('task_01m8a746phm4nn7ycfbdt7hvmctm7v', 'settle', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 1000000, NULL, 1795639352024, NULL),
('task_01m8a746pkk3ezzqbqxtsqpav4mfwk', 'hold', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 400000000, NULL, 1795639352019, NULL),
('task_01m8a746pkk3ezzqbqxtsqpav4mfwk', 'settle', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 400000000, NULL, 1795639352127, NULL),
('task_01m8a7472q4hbaded0fkj1peg75x2m', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639352407, NULL),
('task_01m8a7472q4hbaded0fkj1peg75x2m', 'settle', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639352515, NULL),
('task_01m8a74d6r6cmg3ka08e8n3sjwsnj5', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639358680, NULL),
('task_01m8a74d6w7s82smra69286sn56ntj', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639358684, NULL),
('task_01m8a74d712cr0dvn8rbd2na08f6tc', 'hold', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639358689, NULL),
('task_01m8a74d712cr0dvn8rbd2na08f6tc', 'release', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 400000000, NULL, 1795639358695, NULL),
('task_01m8a74d745qpnpx761pkzs0hcad4n', 'hold', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 400000000, NULL, 1795639358692, NULL),
('user_h6a9f97543a9cqvf', 'unlimited', 'user_h6a9f97543a9cqvf', NULL, 0, NULL, 1795639351196, NULL);
DELETE FROM list_blocks;
DELETE FROM list_values;
DELETE FROM meta;
INSERT INTO meta (name, value) VALUES
('access_version', 14),
('chats_forgotten', 0),
('admin_event_seq', 23),
('config_version', 3),
('tail_watched_until', 0),
('alerts_checked_at', 0),
('queue_moved', 1),
('list_blocks_version', 0),
('usage_totals_from', 0),
('schema_version', 29),
('oldest_compatible', 24);
DELETE FROM oidc_identities;
DELETE FROM oidc_sign_ins;
DELETE FROM open_circuits;
DELETE FROM portal_sessions;
DELETE FROM queue;
INSERT INTO queue (task_id, shard, user_id, key_id, due_at, owner, lease_until, fence, deadline_at, started_at, failed_attempts, queued_attempt, progress, polled_at) VALUES
('task_01m8a74d6r6cmg3ka08e8n3sjwsnj5', 23, 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', NULL, 'node_w3f6mspkdat81x10', 1795639388683, 1, 1795639958680, 1795639358683, 0, NULL, 0, NULL),
('task_01m8a74d6w7s82smra69286sn56ntj', 23, 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', NULL, 'node_w3f6mspkdat81x10', 1795639388687, 1, 1795639958684, 1795639358687, 0, NULL, 0, NULL),
('task_01m8a74d745qpnpx761pkzs0hcad4n', 28, 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 1795639358692, NULL, NULL, 0, 1795639958692, NULL, 0, NULL, 0, NULL);
DELETE FROM reconciliations;
DELETE FROM tail_events;
DELETE FROM tasks;
INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, started_at, ended_at, deadline_at, due_at, owner, fence, failed_attempts, job, adjustments, shown, callback_url, queued_attempt, result, error_code, error_message, cost, request_id, refunded, trace_context, polled_at, trace_state) VALUES
('task_01m8a7460fr6w16dx2vjns8bwmfvg0', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639351311, 1795639351314, 1795639351425, 1795639951311, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:37439/ok', NULL, '{"files":[{"name":"1ngh6dqk45hz1e98faa89c7ypmfks5jdm.png","expires_at":1795725751,"bytes":125907}]}', NULL, NULL, 400000000, 'req_d8hhpnzs22t5jvbxzgz9', 100000000, NULL, NULL, NULL),
('task_01m8a7465mnqpj3tvtseqrr6w67my0', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639351476, 1795639351479, 1795639351583, 1795639951476, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:partial=1]] two mills","n":2,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6dq8wgeewqz3pvcem4fr61pajd73m.png","expires_at":1795725751,"bytes":131142}],"adjustments":[{"field":"n","asked":2,"used":1,"why":"the provider delivered fewer images; only these are charged"}]}', NULL, NULL, 400000000, 'req_306dzscxr9m83ah1vm5v', 0, NULL, NULL, NULL),
('task_01m8a746arfhp7dfqzj02b4yebz0wc', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 3, 0, 1795639351640, 1795639351642, 1795639351645, 1795639951640, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail]]","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:37439/fail', NULL, NULL, 'provider_error', 'the sandbox was told to fail ([[sandbox:fail]])', 0, 'req_rfgxqh77qvcfscjsm4pq', 0, NULL, NULL, NULL),
('task_01m8a746chy667h4ge0fjv912rarp5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639351697, 1795639351700, 1795639352010, 1795639951697, 0, NULL, 2, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail=1]] a mill in the end","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6drv3nhnj60rdndzbrmnzrrga11s3.png","expires_at":1795725752,"bytes":153271}]}', NULL, NULL, 400000000, 'req_btknwe8bsa1dcxe7wn4m', 0, NULL, NULL, NULL),
('task_01m8a746phm4nn7ycfbdt7hvmctm7v', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'speech', 'native-v3', 'native-v3', 2, 100, 1795639352017, 1795639352019, 1795639352024, 1795639652017, 0, NULL, 1, 0, '{"model":"native-v3","family":"native-v3","text":"hello","voice":"alloy"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6dry5y04zvafac8germ09nq5z39kr.wav","expires_at":1795725752,"bytes":28618}]}', NULL, NULL, 1000000, 'req_14r024bb2kyc907zszq6', 0, NULL, NULL, NULL),
('task_01m8a746pkk3ezzqbqxtsqpav4mfwk', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639352019, 1795639352021, 1795639352127, 1795639952019, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill for bob","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6drtt0qdjadgenk2zmsvyp5c2hzmb.png","expires_at":1795725752,"bytes":210857}]}', NULL, NULL, 400000000, 'req_mwz495c6w1a0vkt8htdh', 0, NULL, NULL, NULL),
('task_01m8a7472q4hbaded0fkj1peg75x2m', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639352407, 1795639352408, 1795639352515, 1795639952407, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"after all that","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6dre46pb70mr4bxqkapxe3qeprh6s.png","expires_at":1795725752,"bytes":242000}]}', NULL, NULL, 400000000, 'req_42tr83sga2tc3kx7z494', 0, NULL, NULL, NULL),
('task_01m8a74d6r6cmg3ka08e8n3sjwsnj5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795639358680, NULL, NULL, 4102444800000, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:37439/ok', NULL, NULL, NULL, NULL, 0, 'req_z1df0wq6yhfkj68449nz', 0, NULL, NULL, NULL),
('task_01m8a74d6w7s82smra69286sn56ntj', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795639358684, NULL, NULL, 4102444800000, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:37439/ok', NULL, NULL, NULL, NULL, 0, 'req_dhww009yffd7cmdzewck', 0, NULL, NULL, NULL),
('task_01m8a74d712cr0dvn8rbd2na08f6tc', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'image', 'gpt-image-2', 'gpt-image-2-official', 4, 0, 1795639358689, NULL, 1795639358695, 1795639958689, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:37439/ok', NULL, NULL, 'cancelled', 'cancelled by its user', 0, 'req_ctzkrn2r6a80abynvfrd', 0, NULL, NULL, NULL),
('task_01m8a74d745qpnpx761pkzs0hcad4n', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795639358692, NULL, NULL, 4102444800000, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, NULL, NULL, NULL, 0, 'req_p3abfy39cqn3nt8ry9m4', 0, NULL, NULL, NULL);
DELETE FROM upload_bytes;
DELETE FROM usage_daily;
INSERT INTO usage_daily (day, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed) VALUES
(1795564800000, 'gpt-5', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'main', 21600000, 2, 36, 0, 0, 0),
(1795564800000, 'gpt-5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', '', 0, 1, 0, 0, 0, 1),
(1795564800000, 'gpt-5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'main', 10800000, 2, 36, 0, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'main', 400000000, 1, 0, 1, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', '', 0, 1, 0, 0, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'main', 1500000000, 5, 0, 4, 0, 1),
(1795564800000, 'native-v3', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'main', 1000000, 1, 0, 0, 0, 0);
DELETE FROM usage_hourly;
INSERT INTO usage_hourly (hour, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed) VALUES
(1795636800000, 'gpt-5', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'main', 21600000, 2, 36, 0, 0, 0),
(1795636800000, 'gpt-5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', '', 0, 1, 0, 0, 0, 1),
(1795636800000, 'gpt-5', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'main', 10800000, 2, 36, 0, 0, 0),
(1795636800000, 'gpt-image-2-official', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'main', 400000000, 1, 0, 1, 0, 0),
(1795636800000, 'gpt-image-2-official', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', '', 0, 1, 0, 0, 0, 0),
(1795636800000, 'gpt-image-2-official', 'user_rhwdk46wxrp7wp6m', 'key_evpr4h5ymam9r0jk', 'main', 1500000000, 5, 0, 4, 0, 1),
(1795636800000, 'native-v3', 'user_h6a9f97543a9cqvf', 'key_a0j5rq7fhxwcrtr7', 'main', 1000000, 1, 0, 0, 0, 0);
DELETE FROM usage_pending;
DELETE FROM usage_totals;
INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed) VALUES
(3600000, 'all', 1795636800000, '', 1933400000, 13, 72, 5, 0, 2),
(3600000, 'channel', 1795636800000, '', 0, 2, 0, 0, 0, 1),
(3600000, 'channel', 1795636800000, 'main', 1933400000, 11, 72, 5, 0, 1),
(3600000, 'key', 1795636800000, 'key_a0j5rq7fhxwcrtr7', 422600000, 4, 36, 1, 0, 0),
(3600000, 'key', 1795636800000, 'key_evpr4h5ymam9r0jk', 1510800000, 9, 36, 4, 0, 2),
(3600000, 'model', 1795636800000, 'gpt-5', 32400000, 5, 72, 0, 0, 1),
(3600000, 'model', 1795636800000, 'gpt-image-2-official', 1900000000, 7, 0, 5, 0, 1),
(3600000, 'model', 1795636800000, 'native-v3', 1000000, 1, 0, 0, 0, 0),
(3600000, 'user', 1795636800000, 'user_h6a9f97543a9cqvf', 422600000, 4, 36, 1, 0, 0),
(3600000, 'user', 1795636800000, 'user_rhwdk46wxrp7wp6m', 1510800000, 9, 36, 4, 0, 2),
(86400000, 'all', 1795564800000, '', 1933400000, 13, 72, 5, 0, 2),
(86400000, 'channel', 1795564800000, '', 0, 2, 0, 0, 0, 1),
(86400000, 'channel', 1795564800000, 'main', 1933400000, 11, 72, 5, 0, 1),
(86400000, 'key', 1795564800000, 'key_a0j5rq7fhxwcrtr7', 422600000, 4, 36, 1, 0, 0),
(86400000, 'key', 1795564800000, 'key_evpr4h5ymam9r0jk', 1510800000, 9, 36, 4, 0, 2),
(86400000, 'model', 1795564800000, 'gpt-5', 32400000, 5, 72, 0, 0, 1),
(86400000, 'model', 1795564800000, 'gpt-image-2-official', 1900000000, 7, 0, 5, 0, 1),
(86400000, 'model', 1795564800000, 'native-v3', 1000000, 1, 0, 0, 0, 0),
(86400000, 'user', 1795564800000, 'user_h6a9f97543a9cqvf', 422600000, 4, 36, 1, 0, 0),
(86400000, 'user', 1795564800000, 'user_rhwdk46wxrp7wp6m', 1510800000, 9, 36, 4, 0, 2);
DELETE FROM webhook_secrets;
INSERT INTO webhook_secrets (key_id, secret, created_at) VALUES
('key_evpr4h5ymam9r0jk', 'whsec_+EDQ0JRCXdW1XZW8cNeN9yYYnFK0k9EcQm8gqdUbUBg=', 1795639351428);
