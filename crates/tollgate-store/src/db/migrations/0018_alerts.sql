-- What operators want to hear of. kind: low_balance, budget, circuit_open, queue_age, audit_violation, webhook_given_up, debt. threshold is an amount in
-- billionths, a part in billionths, or seconds; null for the others. The secret signs what is sent to url.
CREATE TABLE alerts (
    id         TEXT NOT NULL PRIMARY KEY,
    kind       TEXT NOT NULL,
    threshold  BIGINT,
    url        TEXT NOT NULL,
    enabled    BIGINT NOT NULL,
    secret     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    version    BIGINT NOT NULL
) {rows};
CREATE INDEX alerts_by_time ON alerts (created_at, id);

-- What an alert was sent for and still holds: it is not sent for that again. subject is the user, budget, channel, … that it is about.
CREATE TABLE alert_states (
    alert_id TEXT NOT NULL,
    subject  TEXT NOT NULL,
    since    BIGINT NOT NULL,
    PRIMARY KEY (alert_id, subject)
) {clustered};

-- Messages to send, and what became of them. due_at is null once one was delivered or given up.
CREATE TABLE alert_deliveries (
    id       TEXT NOT NULL PRIMARY KEY,
    alert_id TEXT NOT NULL,
    at       BIGINT NOT NULL,
    body     TEXT NOT NULL,
    due_at   BIGINT,
    attempts BIGINT NOT NULL,
    state    TEXT NOT NULL,
    status   BIGINT,
    error    TEXT,
    ms       BIGINT
) {rows};
CREATE INDEX alert_deliveries_of_alert ON alert_deliveries (alert_id, at, id);
CREATE INDEX alert_deliveries_due ON alert_deliveries (due_at) WHERE due_at IS NOT NULL;

-- Channels whose circuit is open on a node.
CREATE TABLE open_circuits (
    node    TEXT NOT NULL,
    channel TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (node, channel)
) {clustered};

CREATE INDEX callbacks_given_up ON callbacks (ended_at) WHERE state = 'given_up';

-- When a node last looked for alerts: one at a time.
INSERT INTO meta (name, value) VALUES ('alerts_checked_at', 0);
