-- The last reconciliation of each channel and model: the tokens of the chats on that channel, and those that the provider's usage
-- API reported for the same days. For metrics.
CREATE TABLE reconciliations (
    channel  TEXT NOT NULL,
    model    TEXT NOT NULL,
    counted  BIGINT NOT NULL,
    reported BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (channel, model)
) {clustered};
