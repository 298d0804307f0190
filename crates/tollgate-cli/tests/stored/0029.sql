-- Schema 29, as the program of commit 4dd6f89 left it on SQLite at a kill -9. Only the deadlines of unfinished
-- tasks were moved, to the year 2100.
-- key of ann: sk-Xg2YqkD6Rr87B3FDyJTkpjPbfS3SlWZv6Zm6dov3BSnsyIx3
-- key of bob: sk-Ibmlq3ZlOcHo51vOL1w0BbIBEAzNoWoa7J4WT3PD1S4ETFKX
-- a finished task of ann: task_01m8a78bjwr2rsjtfq1y98ynn52c69
INSERT INTO users (id, name, unlimited, balance, held, used, rpm, tpm, max_concurrency, disabled_at, created_at, version, budgets) VALUES
('user_tscqsw2n207n50gb', 'ann', 0, 11489200000, 800000000, 1510800000, NULL, NULL, NULL, NULL, 1795639487962, 1, 1),
('user_jn8dyn2hp1r7506h', 'bob', 1, -422600000, 400000000, 422600000, NULL, NULL, NULL, NULL, 1795639487976, 1, 0),
('user_k3y9emt0rxd62f6m', 'eve', 0, 1000000000, 0, 0, NULL, NULL, NULL, 1795639488066, 1795639487991, 2, 0);
INSERT INTO keys (id, user_id, label, hash, quota, held, used, rpm, tpm, max_concurrency, models, bare_envelope, expires_at, revoked_at, created_at, version, hint, previous_hash, previous_valid_until, budgets, parent_key_id, trace_content) VALUES
('key_8sm545x6518j1evw', 'user_tscqsw2n207n50gb', 'laptop', '782ee0155caadbc2287801699649af5a68832616f5fc2ef89580487e0ee3eb07', 4500000000, 800000000, 1510800000, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1795639488009, 2, 'sk-Xg2YqkD6', NULL, NULL, 1, NULL, 0),
('key_wvk3ywmhhacc41x8', 'user_jn8dyn2hp1r7506h', '', '84bbcf2493e65f2ef22be1c049e16f7485be99f5242f337bd53da52af643bc78', NULL, 400000000, 422600000, 600, NULL, 8, '["gpt-5","gpt-image-2-official","native-v3"]', 0, 4070908800000, NULL, 1795639488024, 2, 'sk-Ibmlq3Zl', 'c1de6468986848dcfcf7ba78043ce820896a6ff0dc4e68012f2401a175dbfeaf', 1795640089110, 0, NULL, 0),
('key_3j1s0zj85aa7aq0a', 'user_k3y9emt0rxd62f6m', '', '7f89def213ae808312d5e013dbb38462d8457a7c1b4d72a9f22a4a75a6a1fc42', NULL, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, 1795639488055, 1795639488040, 2, 'sk-eRFRvIaz', NULL, NULL, 0, NULL, 0),
('key_t000c88aedgxngp3', 'user_tscqsw2n207n50gb', 'child', '8fdee1dea598bcdfa66f6088226f1f5ad3cc2c28174723cec62b6af4108463a8', 500000000, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 1795639489137, 1, 'sk-92YMB0RJ', NULL, NULL, 0, 'key_8sm545x6518j1evw', 0);
INSERT INTO nodes (id, alive_until, version, started_at, last_seen_at, config_version, config_error, schema_version, clock_offset, settings, not_ready) VALUES
('node_4p9fcs3nfnc1vj8c', 1795639525454, '0.2.0', 1795639495447, 1795639495456, 3, NULL, 29, NULL, '{"currency":"USD","fingerprint":"16e2caa101dcedd1"}', NULL),
('node_gzzm3x4dn5m3ck9f', 1795639495387, '0.2.0', 1795639487933, 1795639494291, 3, NULL, 29, NULL, '{"currency":"USD","fingerprint":"dc8aa7968f2595c2"}', NULL);
DELETE FROM access_changes;
INSERT INTO access_changes (version, user_id, key_id) VALUES
(2, 'user_tscqsw2n207n50gb', NULL),
(3, 'user_jn8dyn2hp1r7506h', NULL),
(4, 'user_k3y9emt0rxd62f6m', NULL),
(5, NULL, 'key_8sm545x6518j1evw'),
(6, NULL, 'key_wvk3ywmhhacc41x8'),
(7, NULL, 'key_3j1s0zj85aa7aq0a'),
(8, NULL, 'key_3j1s0zj85aa7aq0a'),
(9, 'user_k3y9emt0rxd62f6m', NULL),
(10, NULL, 'key_wvk3ywmhhacc41x8'),
(11, 'user_tscqsw2n207n50gb', NULL),
(12, NULL, 'key_8sm545x6518j1evw'),
(13, NULL, 'key_t000c88aedgxngp3'),
(14, NULL, 'key_8sm545x6518j1evw');
DELETE FROM admin_events;
INSERT INTO admin_events (seq, at, actor, token_id, address, request_id, action, object_type, object_id, before, after, reason, prev_hash, hash) VALUES
(1, 1795639487962, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_tscqsw2n207n50gb', NULL, '{"id":"user_tscqsw2n207n50gb","name":"ann","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:44:47.962Z","version":1,"balance":"10"}', NULL, '0000000000000000000000000000000000000000000000000000000000000000', '6ec0058ce62b32cb975f6b8eeab1a6d31c120935e17bd101ed250c0a18d68daa'),
(2, 1795639487976, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_jn8dyn2hp1r7506h', NULL, '{"id":"user_jn8dyn2hp1r7506h","name":"bob","unlimited":true,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:44:47.976Z","version":1}', NULL, '6ec0058ce62b32cb975f6b8eeab1a6d31c120935e17bd101ed250c0a18d68daa', 'baa6445f3cd2e9fcc30c7ad62326e38f1d0aaac2cd651b271e90c2b4b1dfd24a'),
(3, 1795639487991, 'cli', NULL, NULL, NULL, 'user.create', 'user', 'user_k3y9emt0rxd62f6m', NULL, '{"id":"user_k3y9emt0rxd62f6m","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:44:47.991Z","version":1,"balance":"1"}', NULL, 'baa6445f3cd2e9fcc30c7ad62326e38f1d0aaac2cd651b271e90c2b4b1dfd24a', '3084f5f682a7e146bda6ccea9070a4a3b5e43e971dedf4ed261cccd48b84a1b8'),
(4, 1795639488009, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_8sm545x6518j1evw', NULL, '{"id":"key_8sm545x6518j1evw","name":"laptop","user_id":"user_tscqsw2n207n50gb","hint":"sk-Xg2YqkD6","quota":"5","rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:44:48.009Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', NULL, '3084f5f682a7e146bda6ccea9070a4a3b5e43e971dedf4ed261cccd48b84a1b8', 'ee34dc7c08ae26fa8af4aa0232faef4fb3093d7b7b8bd72ddd2a1e8b39c3d610'),
(5, 1795639488024, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_wvk3ywmhhacc41x8', NULL, '{"id":"key_wvk3ywmhhacc41x8","name":"","user_id":"user_jn8dyn2hp1r7506h","hint":"sk-ey64kUFH","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T20:44:48.024Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":null,"version":1}', NULL, 'ee34dc7c08ae26fa8af4aa0232faef4fb3093d7b7b8bd72ddd2a1e8b39c3d610', '937d1b3c5ed7bc78aa560b467a7a42e8ab7f6527a8b122d5edd2dd1a907765a0'),
(6, 1795639488040, 'cli', NULL, NULL, NULL, 'key.create', 'key', 'key_3j1s0zj85aa7aq0a', NULL, '{"id":"key_3j1s0zj85aa7aq0a","name":"","user_id":"user_k3y9emt0rxd62f6m","hint":"sk-eRFRvIaz","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:44:48.040Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', NULL, '937d1b3c5ed7bc78aa560b467a7a42e8ab7f6527a8b122d5edd2dd1a907765a0', '4a65591c16de773ee26c5dc94340bdb34f8c8b90ff2f19c5fe459f765a0cd274'),
(7, 1795639488055, 'cli', NULL, NULL, NULL, 'key.revoke', 'key', 'key_3j1s0zj85aa7aq0a', '{"id":"key_3j1s0zj85aa7aq0a","name":"","user_id":"user_k3y9emt0rxd62f6m","hint":"sk-eRFRvIaz","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:44:48.040Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1}', '{"id":"key_3j1s0zj85aa7aq0a","name":"","user_id":"user_k3y9emt0rxd62f6m","hint":"sk-eRFRvIaz","quota":null,"rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:44:48.040Z","expires_at":null,"revoked_at":"2026-11-25T20:44:48.055Z","previous_valid_until":null,"version":2}', NULL, '4a65591c16de773ee26c5dc94340bdb34f8c8b90ff2f19c5fe459f765a0cd274', '32c46476bc196f4d46e1c90826d7309b6a731f6d1fcc78b1321ee34fa8c44215'),
(8, 1795639488066, 'cli', NULL, NULL, NULL, 'user.update', 'user', 'user_k3y9emt0rxd62f6m', '{"id":"user_k3y9emt0rxd62f6m","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":false,"created_at":"2026-11-25T20:44:47.991Z","version":1}', '{"id":"user_k3y9emt0rxd62f6m","name":"eve","unlimited":false,"rpm":null,"tpm":null,"max_concurrency":null,"disabled":true,"created_at":"2026-11-25T20:44:47.991Z","version":2}', NULL, '32c46476bc196f4d46e1c90826d7309b6a731f6d1fcc78b1321ee34fa8c44215', 'fe04a0650296219fd48a70b25d1ac1d9ef5243c4d5470416b3d520436afb8aed'),
(9, 1795639488080, 'cli', NULL, NULL, NULL, 'user.credit', 'user', 'user_tscqsw2n207n50gb', NULL, '{"id":"credit_vcp74kxxkc33vxkp:credit","at":"2026-11-25T20:44:48.080Z","user_id":"user_tscqsw2n207n50gb","key_id":null,"kind":"credit","amount":"2.5","delta":"2.5","ref":"credit_vcp74kxxkc33vxkp","reference":null,"reason":"a gift"}', 'a gift', 'fe04a0650296219fd48a70b25d1ac1d9ef5243c4d5470416b3d520436afb8aed', '277230be4eae99b440099ce613db4a57ae5b120f3e7a9ad2c15942d80d089bf5'),
(10, 1795639489098, 'owner', NULL, '127.0.0.1', 'req_r6wadhg1e5b6j5cwnf61', 'token.create', 'token', 'tok_p8y0001rk06ykg12', NULL, '{"id":"tok_p8y0001rk06ykg12","name":"reports","scopes":["users:read"],"hint":"adm_efGsLvhV","created_at":"2026-11-25T20:44:49.098Z","expires_at":null,"last_used_at":null,"version":1}', NULL, '277230be4eae99b440099ce613db4a57ae5b120f3e7a9ad2c15942d80d089bf5', '014fa7ea3ee5c48a603cfae630fd9f0a162e885b78be434b3fc5b8412ee7f9de'),
(11, 1795639489102, 'owner', NULL, '127.0.0.1', 'req_tar6fwqpyy96j5cqzjym', 'admin.create', 'admin', 'admin_z33m0zk8pskr5r9g', NULL, '{"id":"admin_z33m0zk8pskr5r9g","name":"ada","role":"finance","disabled":false,"created_at":"2026-11-25T20:44:49.102Z","last_sign_in_at":null,"version":1}', NULL, '014fa7ea3ee5c48a603cfae630fd9f0a162e885b78be434b3fc5b8412ee7f9de', 'e8512a10d82d1e173a6078922502aab48453ffeb59fcd66838f641eb65f3657e'),
(12, 1795639489107, 'owner', NULL, '127.0.0.1', 'req_chnxgfckhqy43xccaxe6', 'user.credit', 'user', 'user_tscqsw2n207n50gb', NULL, '{"id":"credit_y8s5km5151j1c9jd:credit","at":"2026-11-25T20:44:49.107Z","user_id":"user_tscqsw2n207n50gb","key_id":null,"kind":"credit","amount":"0.5","delta":"0.5","ref":"credit_y8s5km5151j1c9jd","reference":"payment-1","reason":"goodwill"}', 'goodwill', 'e8512a10d82d1e173a6078922502aab48453ffeb59fcd66838f641eb65f3657e', 'd8cd78c493311013eedd2f1992f349e187efa6e8f5c53c0410437aac804d1525'),
(13, 1795639489110, 'owner', NULL, '127.0.0.1', 'req_5ep5ny9czqkm3s1tx0ky', 'key.rotate', 'key', 'key_wvk3ywmhhacc41x8', '{"id":"key_wvk3ywmhhacc41x8","name":"","user_id":"user_jn8dyn2hp1r7506h","hint":"sk-ey64kUFH","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T20:44:48.024Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":null,"version":1}', '{"id":"key_wvk3ywmhhacc41x8","name":"","user_id":"user_jn8dyn2hp1r7506h","hint":"sk-Ibmlq3Zl","quota":null,"rpm":600,"tpm":null,"max_concurrency":8,"models":["gpt-5","gpt-image-2-official","native-v3"],"envelope":"standard","created_at":"2026-11-25T20:44:48.024Z","expires_at":"2099-01-01T00:00:00.000Z","revoked_at":null,"previous_valid_until":"2026-11-25T20:54:49.110Z","version":2}', NULL, 'd8cd78c493311013eedd2f1992f349e187efa6e8f5c53c0410437aac804d1525', '8f3cb3f90fe32b23f275210d77a92fd79c6e68c76fc9fcb1dbfffaf7022b8818'),
(14, 1795639489112, 'owner', NULL, '127.0.0.1', 'req_vxqq1sfhckbmr6y8xsgp', 'task.refund', 'task', 'task_01m8a78bjwr2rsjtfq1y98ynn52c69', NULL, '{"id":"task_01m8a78bjwr2rsjtfq1y98ynn52c69:0000000000000000001:refund","at":"2026-11-25T20:44:49.112Z","user_id":"user_tscqsw2n207n50gb","key_id":"key_8sm545x6518j1evw","kind":"refund","amount":"0.1","delta":"0.1","ref":"task_01m8a78bjwr2rsjtfq1y98ynn52c69","reference":null,"reason":"too dark"}', 'too dark', '8f3cb3f90fe32b23f275210d77a92fd79c6e68c76fc9fcb1dbfffaf7022b8818', '0835263a945a9019203f7ea906f0cf22d593cb35b8b71df2be861c272fa019f6'),
(15, 1795639489117, 'owner', NULL, '127.0.0.1', 'req_cf9afxn44pb92jdpv2fr', 'chat.refund', 'chat', 'chat_01m8a78ccr2n9zfr287kjmzt8rrwn9', NULL, '{"id":"chat_01m8a78ccr2n9zfr287kjmzt8rrwn9:0000000000000000001:refund","at":"2026-11-25T20:44:49.117Z","user_id":"user_tscqsw2n207n50gb","key_id":"key_8sm545x6518j1evw","kind":"refund","amount":"0.0108","delta":"0.0108","ref":"chat_01m8a78ccr2n9zfr287kjmzt8rrwn9","reference":null,"reason":"a test"}', 'a test', '0835263a945a9019203f7ea906f0cf22d593cb35b8b71df2be861c272fa019f6', 'b95cfafc53ebffa2a0e4110c19947f494e4729db21e108a42738e44647e816aa'),
(16, 1795639489120, 'owner', NULL, '127.0.0.1', 'req_ta3npfb5r7mkcg8rzz9t', 'audit.create', 'audit', 'audit_zqw7vf2sspfm2m1j', NULL, '{"id":"audit_zqw7vf2sspfm2m1j"}', NULL, 'b95cfafc53ebffa2a0e4110c19947f494e4729db21e108a42738e44647e816aa', '77c8023d6b4c0af45a07ebc6d787f4c0123c1b35239405ad8d44948eccd639a3'),
(17, 1795639489122, 'owner', NULL, '127.0.0.1', 'req_m30cgt85ww48em0k9qb1', 'channel.create', 'channel', 'stored', NULL, '{"name":"stored","kind":"sandbox","source":"database","shadowed":false,"base_url":null,"models":[{"name":"imagen-4.0-partner","upstream":"imagen-4.0-partner","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[],"paused":false,"created_at":"2026-11-25T20:44:49.122Z","updated_at":"2026-11-25T20:44:49.122Z","version":1}', NULL, '77c8023d6b4c0af45a07ebc6d787f4c0123c1b35239405ad8d44948eccd639a3', 'd7725844848ff83a91512215ad0ddd83e44affec855c98e6767fb395dc96e987'),
(18, 1795639489125, 'owner', NULL, '127.0.0.1', 'req_zp1901qqq59s50aha1tp', 'price.create', 'price', 'imagen-4.0-partner', NULL, '{"model":"imagen-4.0-partner","source":"database","shadowed":false,"per_image":"0.3","version":1}', NULL, 'd7725844848ff83a91512215ad0ddd83e44affec855c98e6767fb395dc96e987', 'b744fecb713d545ad6f3a4017bf11c61453fa4aa354f0b078fd2f6e812b88e2b'),
(19, 1795639489128, 'owner', NULL, '127.0.0.1', 'req_zqapzx94bt276tf76q78', 'channel.pause', 'channel', 'broken', '{"name":"broken","kind":"openai","source":"file","shadowed":false,"base_url":"http://127.0.0.1:9/v1","models":[{"name":"gpt-5","upstream":"gpt-5","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[{"fingerprint":"91e26f462ba6ae7d","hint":null,"origin":"file"}],"paused":false,"created_at":null,"updated_at":null,"version":1}', '{"name":"broken","kind":"openai","source":"file","shadowed":false,"base_url":"http://127.0.0.1:9/v1","models":[{"name":"gpt-5","upstream":"gpt-5","options":null}],"priority":0,"weight":1,"max_concurrency":null,"connect_s":null,"first_byte_s":null,"idle_s":null,"apis":null,"poll_ms":null,"options":{},"api_keys":[{"fingerprint":"91e26f462ba6ae7d","hint":null,"origin":"file"}],"paused":true,"created_at":null,"updated_at":null,"version":1}', NULL, 'b744fecb713d545ad6f3a4017bf11c61453fa4aa354f0b078fd2f6e812b88e2b', '87b4c30b7188006603cd6f839fbf1add5b7ca87c8c683c15e642012b82e386dd'),
(20, 1795639489132, 'owner', NULL, '127.0.0.1', 'req_jtad8agzvrfn8kk7rz2b', 'budget.create', 'budget', 'bud_bwfds63yfznrr8r6', NULL, '{"id":"bud_bwfds63yfznrr8r6","user_id":"user_tscqsw2n207n50gb","key_id":null,"amount":"100","period":"month","mode":"hard"}', NULL, '87b4c30b7188006603cd6f839fbf1add5b7ca87c8c683c15e642012b82e386dd', 'a8d4a579f126a77b2306ad367b7fdfc31a74191732391c0d9e51998dc2d91f79'),
(21, 1795639489134, 'owner', NULL, '127.0.0.1', 'req_352h39w1fcnc19sgs92r', 'budget.create', 'budget', 'bud_pg4vrtx262x4p1ve', NULL, '{"id":"bud_pg4vrtx262x4p1ve","user_id":null,"key_id":"key_8sm545x6518j1evw","amount":"50","period":"day","mode":"soft"}', NULL, 'a8d4a579f126a77b2306ad367b7fdfc31a74191732391c0d9e51998dc2d91f79', '10d0d76c2ce351f3eb49c8431c041117cf7b8733ca7b0433fc6b5ba96c6132c9'),
(22, 1795639489137, 'user:user_tscqsw2n207n50gb', NULL, '127.0.0.1', 'req_5br1fgp85xj27cvw1x46', 'key.create', 'key', 'key_t000c88aedgxngp3', NULL, '{"id":"key_t000c88aedgxngp3","name":"child","user_id":"user_tscqsw2n207n50gb","hint":"sk-92YMB0RJ","quota":"0.5","rpm":null,"tpm":null,"max_concurrency":null,"models":null,"envelope":"standard","created_at":"2026-11-25T20:44:49.137Z","expires_at":null,"revoked_at":null,"previous_valid_until":null,"version":1,"parent_key_id":"key_8sm545x6518j1evw"}', NULL, '10d0d76c2ce351f3eb49c8431c041117cf7b8733ca7b0433fc6b5ba96c6132c9', 'bd882310a89e67e3a6a983ee5d96206f1830859b494548b27e646d5ddd8cb01e'),
(23, 1795639489140, 'owner', NULL, '127.0.0.1', 'req_3xbx6kr5kygy394e14w4', 'alert.create', 'alert', 'alert_7yg6nxvzxnj840ws', NULL, '{"id":"alert_7yg6nxvzxnj840ws","on":"low_balance","threshold":"0.5","url":"http://127.0.0.1:42867/alert","enabled":true,"created_at":"2026-11-25T20:44:49.140Z","version":1}', NULL, 'bd882310a89e67e3a6a983ee5d96206f1830859b494548b27e646d5ddd8cb01e', '9f91198129db1f3e67a318de8537ea85420ad8d2579589a5d89c8c4eb9162aef');
DELETE FROM admin_links;
DELETE FROM admin_sessions;
DELETE FROM admin_sign_in_failures;
DELETE FROM admin_tokens;
INSERT INTO admin_tokens (id, name, scopes, hash, hint, created_at, expires_at, last_used_at, version) VALUES
('tok_p8y0001rk06ykg12', 'reports', '["users:read"]', '8e5d18f218f3e9428f705808589616dccf29fdd7470137a1d84db52643a5dff1', 'adm_efGsLvhV', 1795639489098, NULL, NULL, 1);
DELETE FROM admin_writes;
DELETE FROM admins;
INSERT INTO admins (id, name, role, password, disabled, created_at, last_sign_in_at, version) VALUES
('admin_z33m0zk8pskr5r9g', 'ada', 'finance', NULL, 0, 1795639489102, NULL, 1);
DELETE FROM alert_deliveries;
DELETE FROM alert_states;
DELETE FROM alerts;
INSERT INTO alerts (id, kind, threshold, url, enabled, secret, created_at, version) VALUES
('alert_7yg6nxvzxnj840ws', 'low_balance', 500000000, 'http://127.0.0.1:42867/alert', 1, 'whsec_58Wu0vxKDCW+Zma/3M1I0yo49lUlwA1u+Z+Q3b1TwIM=', 1795639489140, 1);
DELETE FROM attempts;
INSERT INTO attempts (task_id, number, channel, fence, queued, external_id, key_print, ticket, ticket_at, adjustments, started_at, ended_at, outcome, error) VALUES
('task_01m8a78bjwr2rsjtfq1y98ynn52c69', 1, 'main', 1, 0, 'tollgate-bh4j6mxmpwzpgkcr', NULL, NULL, NULL, NULL, 1795639488096, 1795639488205, 'done', NULL),
('task_01m8a78br0hpy6mpa45vb75h5p7bq4', 1, 'main', 1, 0, 'tollgate-rpzq6a3p06aehkdh', NULL, NULL, NULL, NULL, 1795639488260, 1795639488361, 'partial', 'the prompt asks the sandbox for 1 images only ([[sandbox:partial=K]])'),
('task_01m8a78bved20w8srzk0a5p7zxka99', 1, 'main', 1, 0, 'tollgate-rkyat5qk23pps2dv', NULL, NULL, NULL, NULL, 1795639488369, 1795639488370, 'failed', 'the sandbox was told to fail ([[sandbox:fail]])'),
('task_01m8a78bx7k23rfdrw72qa4k2r8mbm', 1, 'main', 1, 0, 'tollgate-gmx71w5dw13c02dt', NULL, NULL, NULL, NULL, 1795639488427, 1795639488428, 'failed', 'the sandbox was told to fail this attempt, number 1 ([[sandbox:fail=N]])'),
('task_01m8a78bx7k23rfdrw72qa4k2r8mbm', 2, 'main', 2, 0, 'tollgate-86e6mjfpjt8qe7ev', NULL, NULL, NULL, NULL, 1795639488632, 1795639488737, 'done', NULL),
('task_01m8a78c7723ktn6epcstjzfvxvba0', 1, 'main', 1, 0, 'tollgate-p0nxtcvmeq9tbbb1', NULL, NULL, NULL, NULL, 1795639488747, 1795639488753, 'done', NULL),
('task_01m8a78c7a8n0j21hch4byz87ezgzw', 1, 'main', 1, 0, 'tollgate-26222xwqs16yfgdh', NULL, NULL, NULL, NULL, 1795639488751, 1795639488857, 'done', NULL),
('task_01m8a78ckp301th0spb0dcvy5sy41t', 1, 'main', 1, 0, 'tollgate-3cjqyg0p8at539cs', NULL, NULL, NULL, NULL, 1795639489147, 1795639489339, 'done', NULL),
('task_01m8a78js6sx1s4dbgyrd2p2812jvg', 1, 'main', 1, 0, 'tollgate-ppr6hnj916q12dpt', NULL, NULL, NULL, NULL, 1795639495468, NULL, NULL, NULL),
('task_01m8a78js98af5ym6jgb95nxy964dm', 1, 'main', 1, 0, 'tollgate-32k1hd0ffcgwnb2r', NULL, NULL, NULL, NULL, 1795639495469, NULL, NULL, NULL);
DELETE FROM audits;
INSERT INTO audits (id, started_at, ended_at, violations, progress) VALUES
('audit_zqw7vf2sspfm2m1j', 1795639489120, 1795639489127, '[]', 0);
DELETE FROM budgets;
INSERT INTO budgets (id, owner_id, amount, period, hard, spent, period_start, created_at, version) VALUES
('bud_bwfds63yfznrr8r6', 'user_tscqsw2n207n50gb', 100000000000, 'month', 1, 1510800000, 1793491200000, 1795639489132, 1),
('bud_pg4vrtx262x4p1ve', 'key_8sm545x6518j1evw', 50000000000, 'day', 0, 1510800000, 1795564800000, 1795639489134, 1);
DELETE FROM callback_tries;
INSERT INTO callback_tries (task_id, number, at, took_ms, status, error) VALUES
('task_01m8a78bjwr2rsjtfq1y98ynn52c69', 1, 1795639488208, 2, 200, NULL),
('task_01m8a78bved20w8srzk0a5p7zxka99', 1, 1795639488372, 1, 500, NULL),
('task_01m8a78bved20w8srzk0a5p7zxka99', 2, 1795639493378, 2, 500, NULL),
('task_01m8a78jscj4qc7s70zqd2je17yxm3', 1, 1795639495493, 4, 200, NULL);
DELETE FROM callbacks;
INSERT INTO callbacks (task_id, key_id, url, state, due_at, owner, attempts, first_at, ended_at, receiver, user_id) VALUES
('task_01m8a78bjwr2rsjtfq1y98ynn52c69', 'key_8sm545x6518j1evw', 'http://127.0.0.1:42867/ok', 'delivered', 1795639548207, NULL, 1, 1795639488205, 1795639488210, 'http://127.0.0.1:42867', 'user_tscqsw2n207n50gb'),
('task_01m8a78bved20w8srzk0a5p7zxka99', 'key_8sm545x6518j1evw', 'http://127.0.0.1:42867/fail', 'waiting', 1795639523380, NULL, 2, 1795639488370, NULL, 'http://127.0.0.1:42867', 'user_tscqsw2n207n50gb'),
('task_01m8a78jscj4qc7s70zqd2je17yxm3', 'key_8sm545x6518j1evw', 'http://127.0.0.1:42867/ok', 'delivered', 1795639555492, NULL, 1, 1795639495483, 1795639495497, 'http://127.0.0.1:42867', 'user_tscqsw2n207n50gb');
DELETE FROM charges;
INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, units_settled, settled, released, opened_at, closed_at, seal, refunded) VALUES
('task_01m8a78bjwr2rsjtfq1y98ynn52c69', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639488092, 1795639488205, -9098456868325865461, 100000000),
('task_01m8a78br0hpy6mpa45vb75h5p7bq4', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 2, 800000000, 1, 400000000, 400000000, 1795639488256, 1795639488361, -5282334979670707486, 0),
('task_01m8a78bved20w8srzk0a5p7zxka99', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795639488366, 1795639488370, 3818817303702826700, 0),
('task_01m8a78bx7k23rfdrw72qa4k2r8mbm', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639488423, 1795639488737, -1512101767886792094, 0),
('task_01m8a78c7723ktn6epcstjzfvxvba0', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'native-v3', 200000000, 1000, 5, 1000000, 5, 1000000, 0, 1795639488743, 1795639488753, -8671740984171725656, 0),
('task_01m8a78c7a8n0j21hch4byz87ezgzw', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639488746, 1795639488857, 7375697246253621909, 0),
('task_01m8a78ckp301th0spb0dcvy5sy41t', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 1, 400000000, 0, 1795639489142, 1795639489339, -1875812676024593635, 0),
('task_01m8a78js6sx1s4dbgyrd2p2812jvg', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795639495462, NULL, 1688630547391516123, 0),
('task_01m8a78js98af5ym6jgb95nxy964dm', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795639495465, NULL, 1638020088769675219, 0),
('task_01m8a78jscj4qc7s70zqd2je17yxm3', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-image-2-official', 400000000, 1, 1, 400000000, 0, 0, 400000000, 1795639495468, 1795639495483, 1407885313829018661, 0),
('task_01m8a78jsrgdmx59gpkwm330b2w9dr', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'gpt-image-2-official', 400000000, 1, 1, 400000000, NULL, NULL, NULL, 1795639495480, NULL, 4319857969288790615, 0);
DELETE FROM chats;
INSERT INTO chats (id, user_id, key_id, model, format, streamed, request_id, input_price, cached_input_price, cache_write_price, output_price, reasoning_price, input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven, outcome, channel, upstream_model, attempts, node, opened_at, closed_at, seal, debt, clamped, parts_cost, parts, refunded, dropped) VALUES
('chat_01m8a78cchwqx9er574qd381837ta7', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-5', 'chat-completions', 0, 'req_xvney7jt5fv3w1es4z51', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639488909, 1795639488913, -2447850506088549027, 0, 0, 0, '', 0, NULL),
('chat_01m8a78ccr2n9zfr287kjmzt8rrwn9', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-5', 'chat-completions', 1, 'req_h44zgy2vs642ds142qh1', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639488917, 1795639488920, 3521702684745823177, 0, 0, 0, '', 10800000, NULL),
('chat_01m8a78ccwjj15a86aeeg1wq5y389v', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'gpt-5', 'chat-completions', 0, 'req_qfdj7mnfjtm46q670gcz', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639488922, 1795639488924, 9089953067404786102, 0, 0, 0, '', 0, NULL),
('chat_01m8a78cd12xh6j9nr0zmh956xff8e', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'gpt-5', 'chat-completions', 1, 'req_2yjrb9wj4hw2665chvm7', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 8, 0, 0, 10, 0, 0, NULL, 10800000, 0, 'done', 'main', 'gpt-5', '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"}]', NULL, 1795639488927, 1795639488929, -7110162750479070416, 0, 0, 0, '', 0, NULL),
('chat_01m8a78cj405nbngkdng9b5f3nbk9j', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'gpt-5', 'chat-completions', 0, 'req_nk8xy11jbpyrebk1k46k', 100000000000, 100000000000, 100000000000, 1000000000000, 1000000000000, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 'failed', NULL, NULL, '[{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"},{"channel":"broken","outcome":"Connect","status":null,"error":"no connection could be made to the upstream"},{"channel":"main","outcome":"Unavailable","status":500,"error":"the sandbox answered with HTTP status 500 ([[sandbox:status=N]])"}]', NULL, 1795639488932, 1795639489092, 182033245926458981, 0, 0, 0, '', 0, NULL);
DELETE FROM configuration;
INSERT INTO configuration (kind, name, body, created_at, updated_at, deleted_at, version) VALUES
('channel', 'stored', '{"models":["imagen-4.0-partner"],"kind":"sandbox","api_keys":[]}', 1795639489122, 1795639489122, NULL, 1),
('pause', 'broken', '{"until":null}', 1795639489128, 1795639489128, NULL, 1),
('price', 'imagen-4.0-partner', '{"per_image":"0.3"}', 1795639489125, 1795639489125, NULL, 1);
DELETE FROM grants;
DELETE FROM idempotency;
INSERT INTO idempotency (user_id, key, fingerprint, task_id, receipt, created_at) VALUES
('user_tscqsw2n207n50gb', 'first', 'e9a3f122d6eb07705a62529b8c686bf724a2365170c9adab09c13c364e7e84d3', 'task_01m8a78bjwr2rsjtfq1y98ynn52c69', '{"code":200,"data":[{"status":"submitted","task_id":"task_01m8a78bjwr2rsjtfq1y98ynn52c69"}]}', 1795639488092);
DELETE FROM leader;
INSERT INTO leader (name, node, until) VALUES
('leader', '', 0);
DELETE FROM ledger;
INSERT INTO ledger (ref, kind, user_id, key_id, amount, note, at, reference) VALUES
('chat_01m8a78ccr2n9zfr287kjmzt8rrwn9:0000000000000000001', 'refund', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 10800000, 'a test', 1795639489117, NULL),
('credit_6ry3zbjravvyfka2', 'credit', 'user_k3y9emt0rxd62f6m', NULL, 1000000000, 'opening balance', 1795639487991, NULL),
('credit_ntcw2ffzqa5tgn3w', 'credit', 'user_tscqsw2n207n50gb', NULL, 10000000000, 'opening balance', 1795639487962, NULL),
('credit_vcp74kxxkc33vxkp', 'credit', 'user_tscqsw2n207n50gb', NULL, 2500000000, 'a gift', 1795639488080, NULL),
('credit_y8s5km5151j1c9jd', 'credit', 'user_tscqsw2n207n50gb', NULL, 500000000, 'goodwill', 1795639489107, 'payment-1'),
('key_8sm545x6518j1evw', 'quota', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 5000000000, NULL, 1795639488009, NULL),
('key_8sm545x6518j1evw:0000000000000000002', 'quota', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 4500000000, NULL, 1795639489137, NULL),
('key_t000c88aedgxngp3', 'quota', 'user_tscqsw2n207n50gb', 'key_t000c88aedgxngp3', 500000000, NULL, 1795639489137, NULL),
('task_01m8a78bjwr2rsjtfq1y98ynn52c69', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488092, NULL),
('task_01m8a78bjwr2rsjtfq1y98ynn52c69', 'settle', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488205, NULL),
('task_01m8a78bjwr2rsjtfq1y98ynn52c69:0000000000000000001', 'refund', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 100000000, 'too dark', 1795639489112, NULL),
('task_01m8a78br0hpy6mpa45vb75h5p7bq4', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 800000000, NULL, 1795639488256, NULL),
('task_01m8a78br0hpy6mpa45vb75h5p7bq4', 'release', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488361, NULL),
('task_01m8a78br0hpy6mpa45vb75h5p7bq4', 'settle', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488361, NULL),
('task_01m8a78bved20w8srzk0a5p7zxka99', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488366, NULL),
('task_01m8a78bved20w8srzk0a5p7zxka99', 'release', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488370, NULL),
('task_01m8a78bx7k23rfdrw72qa4k2r8mbm', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488423, NULL),
('task_01m8a78bx7k23rfdrw72qa4k2r8mbm', 'settle', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639488737, NULL),
('task_01m8a78c7723ktn6epcstjzfvxvba0', 'hold', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 1000000, NULL, 1795639488743, NULL),
('task_01m8a78c7723ktn6epcstjzfvxvba0', 'settle', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 1000000, NULL, 1795639488753, NULL),
('task_01m8a78c7a8n0j21hch4byz87ezgzw', 'hold', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 400000000, NULL, 1795639488746, NULL),
('task_01m8a78c7a8n0j21hch4byz87ezgzw', 'settle', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 400000000, NULL, 1795639488857, NULL),
('task_01m8a78ckp301th0spb0dcvy5sy41t', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639489142, NULL),
('task_01m8a78ckp301th0spb0dcvy5sy41t', 'settle', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639489339, NULL),
('task_01m8a78js6sx1s4dbgyrd2p2812jvg', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639495462, NULL),
('task_01m8a78js98af5ym6jgb95nxy964dm', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639495465, NULL),
('task_01m8a78jscj4qc7s70zqd2je17yxm3', 'hold', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639495468, NULL),
('task_01m8a78jscj4qc7s70zqd2je17yxm3', 'release', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 400000000, NULL, 1795639495483, NULL),
('task_01m8a78jsrgdmx59gpkwm330b2w9dr', 'hold', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 400000000, NULL, 1795639495480, NULL),
('user_jn8dyn2hp1r7506h', 'unlimited', 'user_jn8dyn2hp1r7506h', NULL, 0, NULL, 1795639487976, NULL);
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
('task_01m8a78js6sx1s4dbgyrd2p2812jvg', 14, 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', NULL, 'node_1czxf3497g34n3v6', 1795639525464, 1, 4102444800000, 1795639495464, 0, NULL, 0, NULL),
('task_01m8a78js98af5ym6jgb95nxy964dm', 14, 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', NULL, 'node_1czxf3497g34n3v6', 1795639525467, 1, 4102444800000, 1795639495467, 0, NULL, 0, NULL),
('task_01m8a78jsrgdmx59gpkwm330b2w9dr', 24, 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 1795639495480, NULL, NULL, 0, 4102444800000, NULL, 0, NULL, 0, NULL);
DELETE FROM reconciliations;
DELETE FROM tail_events;
DELETE FROM tasks;
INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, started_at, ended_at, deadline_at, due_at, owner, fence, failed_attempts, job, adjustments, shown, callback_url, queued_attempt, result, error_code, error_message, cost, request_id, refunded, trace_context, polled_at, trace_state) VALUES
('task_01m8a78bjwr2rsjtfq1y98ynn52c69', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639488092, 1795639488095, 1795639488205, 1795640088092, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:42867/ok', NULL, '{"files":[{"name":"1ngh6j0158xy47b93990hr63j5x62t03z.png","expires_at":1795725888,"bytes":125907}]}', NULL, NULL, 400000000, 'req_6t2gy37bjzj1sstrkhmm', 100000000, NULL, NULL, NULL),
('task_01m8a78br0hpy6mpa45vb75h5p7bq4', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639488256, 1795639488258, 1795639488361, 1795640088256, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:partial=1]] two mills","n":2,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6j0g9m3s740zv2kekgrq63ka5p75p.png","expires_at":1795725888,"bytes":131142}],"adjustments":[{"field":"n","asked":2,"used":1,"why":"the provider delivered fewer images; only these are charged"}]}', NULL, NULL, 400000000, 'req_7kr12bz1mz8dtbj59ax8', 0, NULL, NULL, NULL),
('task_01m8a78bved20w8srzk0a5p7zxka99', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 3, 0, 1795639488366, 1795639488366, 1795639488370, 1795640088366, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail]]","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:42867/fail', NULL, NULL, 'provider_error', 'the sandbox was told to fail ([[sandbox:fail]])', 0, 'req_hv97zwgwy8v5gj0e6ahr', 0, NULL, NULL, NULL),
('task_01m8a78bx7k23rfdrw72qa4k2r8mbm', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639488423, 1795639488425, 1795639488737, 1795640088423, 0, NULL, 2, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"[[sandbox:fail=1]] a mill in the end","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6j0qyaf7y433tgmhqr73xny2xtme8.png","expires_at":1795725888,"bytes":153271}]}', NULL, NULL, 400000000, 'req_7ns8fd41va9qt5q2j2ej', 0, NULL, NULL, NULL),
('task_01m8a78c7723ktn6epcstjzfvxvba0', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'speech', 'native-v3', 'native-v3', 2, 100, 1795639488743, 1795639488745, 1795639488753, 1795639788743, 0, NULL, 1, 0, '{"model":"native-v3","family":"native-v3","text":"hello","voice":"alloy"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6j0m36swczqxkc9mb3t6xq3egvpmr.wav","expires_at":1795725888,"bytes":28618}]}', NULL, NULL, 1000000, 'req_hzcptkp6x2t0r5tsq7a7', 0, NULL, NULL, NULL),
('task_01m8a78c7a8n0j21hch4byz87ezgzw', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639488746, 1795639488749, 1795639488857, 1795640088746, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill for bob","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6j0trk3tpq8pqfmhgtv1wje87jkzz.png","expires_at":1795725888,"bytes":210857}]}', NULL, NULL, 400000000, 'req_9jv8skzn07d8bzbb7kb0', 0, NULL, NULL, NULL),
('task_01m8a78ckp301th0spb0dcvy5sy41t', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 2, 100, 1795639489142, 1795639489145, 1795639489339, 1795640089142, 0, NULL, 1, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"after all that","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, '{"files":[{"name":"1ngh6j10qyz6sg0nns3qge43dnb4xvxhp.png","expires_at":1795725889,"bytes":242000}]}', NULL, NULL, 400000000, 'req_9z0nwfjfr1s29xzx0wf3', 0, NULL, NULL, NULL),
('task_01m8a78js6sx1s4dbgyrd2p2812jvg', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795639495462, NULL, NULL, 4102444800000, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:42867/ok', NULL, NULL, NULL, NULL, 0, 'req_8z5vahr4dd0v3x905xvj', 0, NULL, NULL, NULL),
('task_01m8a78js98af5ym6jgb95nxy964dm', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795639495465, NULL, NULL, 4102444800000, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:42867/ok', NULL, NULL, NULL, NULL, 0, 'req_emwepcjtbmt869pgnnbh', 0, NULL, NULL, NULL),
('task_01m8a78jscj4qc7s70zqd2je17yxm3', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'image', 'gpt-image-2', 'gpt-image-2-official', 4, 0, 1795639495468, NULL, 1795639495483, 1795640095468, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', 'http://127.0.0.1:42867/ok', NULL, NULL, 'cancelled', 'cancelled by its user', 0, 'req_d4494aazb25a7j37j4k9', 0, NULL, NULL, NULL),
('task_01m8a78jsrgdmx59gpkwm330b2w9dr', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'image', 'gpt-image-2', 'gpt-image-2-official', 0, 0, 1795639495480, NULL, NULL, 4102444800000, 0, NULL, 0, 0, '{"model":"gpt-image-2-official","family":"gpt-image-2","prompt":"a mill that takes its time","n":1,"size":{"pixels":{"width":1024,"height":1024},"ratio":"1:1","tier":"1k"},"quality":"auto","output_format":"png","background":"auto","moderation":"auto"}', '[]', '{}', NULL, NULL, NULL, NULL, NULL, 0, 'req_e4qdsshh787xc5nde0ba', 0, NULL, NULL, NULL);
DELETE FROM upload_bytes;
DELETE FROM usage_daily;
INSERT INTO usage_daily (day, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed) VALUES
(1795564800000, 'gpt-5', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'main', 21600000, 2, 36, 0, 0, 0),
(1795564800000, 'gpt-5', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', '', 0, 1, 0, 0, 0, 1),
(1795564800000, 'gpt-5', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'main', 10800000, 2, 36, 0, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'main', 400000000, 1, 0, 1, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', '', 0, 1, 0, 0, 0, 0),
(1795564800000, 'gpt-image-2-official', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'main', 1500000000, 5, 0, 4, 0, 1),
(1795564800000, 'native-v3', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'main', 1000000, 1, 0, 0, 0, 0);
DELETE FROM usage_hourly;
INSERT INTO usage_hourly (hour, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed) VALUES
(1795636800000, 'gpt-5', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'main', 21600000, 2, 36, 0, 0, 0),
(1795636800000, 'gpt-5', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', '', 0, 1, 0, 0, 0, 1),
(1795636800000, 'gpt-5', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'main', 10800000, 2, 36, 0, 0, 0),
(1795636800000, 'gpt-image-2-official', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'main', 400000000, 1, 0, 1, 0, 0),
(1795636800000, 'gpt-image-2-official', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', '', 0, 1, 0, 0, 0, 0),
(1795636800000, 'gpt-image-2-official', 'user_tscqsw2n207n50gb', 'key_8sm545x6518j1evw', 'main', 1500000000, 5, 0, 4, 0, 1),
(1795636800000, 'native-v3', 'user_jn8dyn2hp1r7506h', 'key_wvk3ywmhhacc41x8', 'main', 1000000, 1, 0, 0, 0, 0);
DELETE FROM usage_pending;
DELETE FROM usage_totals;
INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed) VALUES
(3600000, 'all', 1795636800000, '', 1933400000, 13, 72, 5, 0, 2),
(3600000, 'channel', 1795636800000, '', 0, 2, 0, 0, 0, 1),
(3600000, 'channel', 1795636800000, 'main', 1933400000, 11, 72, 5, 0, 1),
(3600000, 'key', 1795636800000, 'key_8sm545x6518j1evw', 1510800000, 9, 36, 4, 0, 2),
(3600000, 'key', 1795636800000, 'key_wvk3ywmhhacc41x8', 422600000, 4, 36, 1, 0, 0),
(3600000, 'model', 1795636800000, 'gpt-5', 32400000, 5, 72, 0, 0, 1),
(3600000, 'model', 1795636800000, 'gpt-image-2-official', 1900000000, 7, 0, 5, 0, 1),
(3600000, 'model', 1795636800000, 'native-v3', 1000000, 1, 0, 0, 0, 0),
(3600000, 'user', 1795636800000, 'user_jn8dyn2hp1r7506h', 422600000, 4, 36, 1, 0, 0),
(3600000, 'user', 1795636800000, 'user_tscqsw2n207n50gb', 1510800000, 9, 36, 4, 0, 2),
(86400000, 'all', 1795564800000, '', 1933400000, 13, 72, 5, 0, 2),
(86400000, 'channel', 1795564800000, '', 0, 2, 0, 0, 0, 1),
(86400000, 'channel', 1795564800000, 'main', 1933400000, 11, 72, 5, 0, 1),
(86400000, 'key', 1795564800000, 'key_8sm545x6518j1evw', 1510800000, 9, 36, 4, 0, 2),
(86400000, 'key', 1795564800000, 'key_wvk3ywmhhacc41x8', 422600000, 4, 36, 1, 0, 0),
(86400000, 'model', 1795564800000, 'gpt-5', 32400000, 5, 72, 0, 0, 1),
(86400000, 'model', 1795564800000, 'gpt-image-2-official', 1900000000, 7, 0, 5, 0, 1),
(86400000, 'model', 1795564800000, 'native-v3', 1000000, 1, 0, 0, 0, 0),
(86400000, 'user', 1795564800000, 'user_jn8dyn2hp1r7506h', 422600000, 4, 36, 1, 0, 0),
(86400000, 'user', 1795564800000, 'user_tscqsw2n207n50gb', 1510800000, 9, 36, 4, 0, 2);
DELETE FROM webhook_secrets;
INSERT INTO webhook_secrets (key_id, secret, created_at) VALUES
('key_8sm545x6518j1evw', 'whsec_AkgC1iUn7mdI5Ods5Vy3ftTgnAeyaqwcrf154oiB1xo=', 1795639488209);
