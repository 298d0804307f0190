-- Adds the partition for ids from {from} until before {until}, in which rows are that found none when they were written.
DO $$
DECLARE
    part record;
BEGIN
    FOR part IN SELECT name, id, name || '_until_{day}' AS partition, name || '_default' AS default_partition
                FROM (VALUES ('tasks', 'id'), ('attempts', 'task_id'), ('callbacks', 'task_id'), ('callback_tries', 'task_id')) AS tables (name, id)
    LOOP
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', part.default_partition);
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS)', part.partition, part.name);
        EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= ''{from}'' AND %2$I < ''{until}'' RETURNING *) INSERT INTO %I SELECT * FROM moved',
                       part.default_partition, part.id, part.partition);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (''{from}'') TO (''{until}'')', part.name, part.partition);
    END LOOP;
END $$
