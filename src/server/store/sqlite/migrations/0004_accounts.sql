-- When a worker's token ends if no agent registers with it by then; NULL once one has, and where it need not be used.
ALTER TABLE workers ADD COLUMN token_unused_ends_at INTEGER;

-- How many notices about an account its owner has not marked as read.
ALTER TABLE users ADD COLUMN unread_notices INTEGER NOT NULL DEFAULT 0;

-- Authenticator apps (RFC 6238): at most one a person.
CREATE TABLE totp (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    -- the key that the app has, in base 32, encrypted, in hex
    sealed TEXT NOT NULL,
    -- which key it is encrypted with
    key_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- when the app's first code was entered; NULL while it is being set up
    confirmed_at INTEGER,
    -- the time step of the last code that was used: no code of it or of an earlier one is accepted again
    last_step INTEGER
) STRICT, WITHOUT ROWID;

-- Codes that stand in for an authenticator app that was lost.
CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL REFERENCES users (id),
    -- SHA-256 of the code, in hex; it has 120 random bits
    digest TEXT NOT NULL,
    used_at INTEGER,
    PRIMARY KEY (user_id, digest)
) STRICT, WITHOUT ROWID;

-- From which networks people have logged in.
CREATE TABLE login_networks (
    user_id TEXT NOT NULL REFERENCES users (id),
    -- an IPv4 /24 or an IPv6 /48
    network TEXT NOT NULL,
    last_login_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, network)
) STRICT, WITHOUT ROWID;

-- What somebody should know of their account, until they mark it as read. The audit trail has it for good.
CREATE TABLE account_notices (
    user_id TEXT NOT NULL REFERENCES users (id),
    -- new_browser | new_network | wrong_code | password_changed | password_reset | factor_added | factor_removed |
    -- recovery_codes_renewed | recovery_code_used
    kind TEXT NOT NULL,
    -- from where, and with which browser; empty where that is not known
    host TEXT NOT NULL,
    agent TEXT NOT NULL,
    -- who did it, as the audit trail names them
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    -- the session that began
    session_id TEXT,
    PRIMARY KEY (user_id, kind, host, agent)
) STRICT, WITHOUT ROWID;
