-- What happened to tasks and chats while somebody watches: one row for each transaction of the writer of a process, which is the source. events is a
-- JSON array of pairs of kind and event; omitted counts those that were too many.
CREATE TABLE tail_events (
    source  TEXT NOT NULL,
    seq     BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    events  TEXT NOT NULL,
    omitted BIGINT NOT NULL,
    PRIMARY KEY (source, seq)
) {clustered};
CREATE INDEX tail_events_by_time ON tail_events (at);

-- Until when every process records events, in milliseconds since 1970.
INSERT INTO meta (name, value) VALUES ('tail_watched_until', 0);
