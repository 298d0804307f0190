-- How much of an audit is done, in percent; and when the provider last told a task's progress.
ALTER TABLE audits ADD COLUMN progress BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN polled_at BIGINT;
