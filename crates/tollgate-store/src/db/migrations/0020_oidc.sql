-- Accounts of an OpenID provider that have signed in: the admin, the user and the user's key of the portal that each of them is.
CREATE TABLE oidc_identities (
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    admin_id   TEXT,
    user_id    TEXT,
    key_id     TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
) {clustered};
CREATE INDEX oidc_identities_by_user ON oidc_identities (user_id);

-- Sign-ins that have succeeded, by the hash of their nonce: none succeeds twice.
CREATE TABLE oidc_sign_ins (
    nonce_hash TEXT NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL
) {clustered};
