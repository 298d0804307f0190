-- The queue by user and key: tasks are claimed in turns, however long one user's backlog is.
-- The state is in it so that walking and counting never touch the tasks themselves.
CREATE INDEX tasks_of_key ON tasks (user_id, key_id, due_at, state) WHERE state < 2;
-- Deadlines are enforced by whoever sees that one has passed.
CREATE INDEX tasks_by_deadline ON tasks (deadline_at) WHERE state < 2;

-- receiver is scheme, host and port of the URL: webhooks are claimed in turns, and only for receivers that can be
-- posted to. The rows of earlier versions share the receiver ''. user_id is whose webhooks are counted.
ALTER TABLE callbacks ADD COLUMN receiver TEXT NOT NULL DEFAULT '';
ALTER TABLE callbacks ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
CREATE INDEX callbacks_of_receiver ON callbacks (receiver, due_at, state) WHERE state = 'waiting';
CREATE INDEX callbacks_of_user ON callbacks (user_id, state) WHERE state = 'waiting';
