-- Ended chats and tasks in blocks of 1024 in the order of their ids: lists with filters read only the blocks in which something can match. list is
-- chats or tasks, number counts from 0, requests is a Bloom filter over the request ids of the chats. Filled in after this migration.
CREATE TABLE list_blocks (
    list     TEXT NOT NULL,
    number   BIGINT NOT NULL,
    first_id TEXT NOT NULL,
    last_id  TEXT NOT NULL,
    requests TEXT NOT NULL,
    PRIMARY KEY (list, number)
) {clustered};
CREATE INDEX list_blocks_by_id ON list_blocks (list, first_id);

-- Which values rows have, and in which of 120 blocks such rows are: bits of low for the first 60, of high for the others. block_group is the
-- number of a block divided by 120. kinds are bits for the formats of chats and the kinds of tasks. A value that a row does not have is empty.
CREATE TABLE list_values (
    list        TEXT NOT NULL,
    block_group BIGINT NOT NULL,
    user_id     TEXT NOT NULL,
    key_id      TEXT NOT NULL,
    model       TEXT NOT NULL,
    channel     TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    error_code  TEXT NOT NULL,
    kinds       BIGINT NOT NULL,
    low         BIGINT NOT NULL,
    high        BIGINT NOT NULL,
    PRIMARY KEY (list, block_group, user_id, key_id, model, channel, outcome, error_code)
) {clustered};

-- Goes up whenever blocks are added or removed.
INSERT INTO meta (name, value) VALUES ('list_blocks_version', 0);
