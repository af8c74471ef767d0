-- The session of the agent that registered last: SHA-256 of its secret and of the token that it was got for, in hex. NULL for
-- older agents, which use the token for everything.
ALTER TABLE workers ADD COLUMN session_digest TEXT;
ALTER TABLE workers ADD COLUMN session_token TEXT;
CREATE UNIQUE INDEX workers_by_session ON workers (session_digest);

-- 0 if agents of the older protocol are refused.
ALTER TABLE workers ADD COLUMN allows_older BIGINT NOT NULL DEFAULT 1;

-- How closely its trainer is to be confined at least: none | files | full.
ALTER TABLE jobs ADD COLUMN sandbox TEXT NOT NULL DEFAULT 'none';
