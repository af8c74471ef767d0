-- Passkeys (WebAuthn): any number a person.
CREATE TABLE passkeys (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- what its owner calls it
    name TEXT NOT NULL,
    -- the address where it was made and where alone it works: https://host or https://host:port
    origin TEXT NOT NULL,
    -- what browsers call it, in base64url
    credential_id TEXT NOT NULL UNIQUE,
    -- its public key, its counter and what it said of itself, as JSON
    credential TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX passkeys_by_user ON passkeys (user_id);

-- What passkeys are asked to sign. Each is answered once, by whoever holds what it was made for.
CREATE TABLE passkey_challenges (
    -- set_up | login | proof
    purpose TEXT NOT NULL,
    -- a session's id; at the login the SHA-256, in hex, of the cookie that stands for the right password
    holder TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- the address of the page that asks
    origin TEXT NOT NULL,
    -- what the browser is given, as JSON
    options TEXT NOT NULL,
    -- what the answer is checked against, as JSON
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    PRIMARY KEY (purpose, holder)
);
CREATE INDEX passkey_challenges_by_end ON passkey_challenges (ends_at);

-- account_notices.kind may also be: wrong_passkey | passkey_copied | passkey_added | passkey_removed | factors_removed
