-- Makes tables with rows of tasks partitioned tables by the id of the task. Each table as it is becomes the first partition, for ids before {bound}, with
-- its rows and indexes untouched: a constraint that was validated before proves to PostgreSQL that it need not look at the rows.
DO $$
DECLARE
    part record;
    index record;
    grantee record;
    definition text;
    definitions text[];
    primary_key text;
BEGIN
    LOCK TABLE tasks, attempts, callbacks, callback_tries IN ACCESS EXCLUSIVE MODE;
    FOR part IN SELECT name, id, name || '_until_{day}' AS first
                FROM (VALUES ('tasks', 'id'), ('attempts', 'task_id'), ('callbacks', 'task_id'), ('callback_tries', 'task_id')) AS tables (name, id)
    LOOP
        definitions := ARRAY(SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = part.name::regclass AND NOT indisprimary);
        primary_key := (SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = part.name::regclass AND contype = 'p');
        FOR index IN SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = part.name::regclass
        LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', index.name, index.name || '_until_{day}');
        END LOOP;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', part.name, part.first);
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS) PARTITION BY RANGE (%I)', part.name, part.first, part.id);
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I %s', part.name, part.name || '_pkey', primary_key);
        FOREACH definition IN ARRAY definitions
        LOOP
            EXECUTE definition;
        END LOOP;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (''{bound}'')', part.name, part.first);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT before_first_partition_ends', part.first);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', part.name || '_default', part.name);
        -- What an operator allowed to other roles.
        FOR grantee IN SELECT a.privilege_type AS privilege, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
                       FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = part.first::regclass AND a.grantee <> c.relowner
        LOOP
            EXECUTE format('GRANT %s ON %I TO %s', grantee.privilege, part.name, grantee.role);
        END LOOP;
    END LOOP;
END $$
