-- Bytes of the uploads of a user that expire within an hour (hours since 1970); user_id is empty for the sums over all users.
CREATE TABLE upload_bytes (
    user_id      TEXT NOT NULL,
    expires_hour BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    PRIMARY KEY (user_id, expires_hour)
) {clustered};
