-- Moments are milliseconds since 1970 (UTC); ids are text with a type prefix; lists and maps are JSON text.

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- ephemeral | persistent; NULL until the admin or the first registration says so
    kind TEXT,
    -- the admin's labels, an object
    labels TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- SHA-256 of the worker's token, in hex
    token_digest TEXT NOT NULL UNIQUE,
    -- when it was made and by whom; NULL where that was not written down
    token_made_at INTEGER,
    token_made_by TEXT,
    -- when it ends; NULL for never
    token_expires_at INTEGER,
    -- SHA-256 of the token before it, while both are good, and when that ends
    old_token_digest TEXT UNIQUE,
    old_token_ends_at INTEGER,
    -- never_seen | connecting | online | offline
    link TEXT NOT NULL,
    link_since INTEGER NOT NULL,
    -- by which stream it listens, when online: <server>-<number>
    link_stream TEXT,
    -- disconnected | silent, when offline
    offline_cause TEXT,
    -- what the agent reported last, an object
    capability TEXT,
    -- a person's wish that it take nothing new
    drain_since INTEGER,
    drain_reason TEXT,
    -- when what still runs is stopped
    drain_deadline INTEGER,
    -- when the one job of an ephemeral worker ended
    spent_at INTEGER,
    -- 1 for the orchestrator's own child agent
    local INTEGER NOT NULL DEFAULT 0,
    -- 1 if labels that the agent reports do not count
    ignores_reported INTEGER NOT NULL DEFAULT 0,
    -- where its agent may come from, a list of networks; an empty one for anywhere
    networks TEXT NOT NULL DEFAULT '[]',
    -- when a second agent came with its token, and from which host, until somebody has seen to it
    conflict_at INTEGER,
    conflict_host TEXT,
    -- which job its older agent runs without holding it, by its own word
    astray_job TEXT,
    -- how long its agent was told that it may be silent, in milliseconds
    lease INTEGER,
    -- when it was last heard of; written in batches, the truth is in memory
    last_seen INTEGER,
    -- from which address
    last_seen_from TEXT
) STRICT;

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    config_name TEXT NOT NULL,
    config_revision INTEGER NOT NULL,
    -- auto | worker | local
    target TEXT NOT NULL,
    -- what the worker must be like: an object
    labels TEXT NOT NULL,
    gpu_count INTEGER,
    min_vram_gb REAL,
    accelerator TEXT,
    num_processes INTEGER,
    max_retries INTEGER NOT NULL,
    retry_on_failure INTEGER NOT NULL,
    -- how long the trainer of an attempt may run, in milliseconds
    max_runtime INTEGER,
    -- 1 if no two trainers of it may ever run at once
    exclusive INTEGER NOT NULL DEFAULT 0,
    -- which checkpoints are sent: none | last | all
    checkpoints TEXT NOT NULL DEFAULT 'last',
    -- the names of the secrets that it is given, a list; NULL for all that can be
    secrets TEXT,
    submitted_at INTEGER NOT NULL,
    submitted_by TEXT NOT NULL,
    -- 0 to 50, the most urgent
    priority INTEGER NOT NULL,
    -- priority and age as one number, as planning orders by it: more is earlier
    urgency INTEGER NOT NULL,
    -- the job that this one tries again
    retry_of TEXT,
    -- where it stands in a trace, as the header of that name
    traceparent TEXT,
    -- the newest attempt that was offered: the fencing number
    attempt INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    -- queued | offered | starting | running | cancelling | completed | failed | cancelled
    state TEXT NOT NULL,
    state_since INTEGER NOT NULL,
    -- the lease: in force in offered to cancelling, else the last one
    worker_id TEXT,
    gpus TEXT,
    -- when an offer ends
    offer_until INTEGER,
    -- not offered before (back-off)
    not_before INTEGER,
    -- until when a trainer of it may run that nobody hears of
    kept_back_until INTEGER,
    -- why it failed, an object
    failure TEXT,
    -- 1 once its logs, or the files that it made, were kept for long enough
    logs_removed INTEGER NOT NULL DEFAULT 0,
    artifacts_removed INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX jobs_by_state ON jobs (state, urgency, submitted_at, id);

-- What ended first goes first.
CREATE INDEX jobs_ended ON jobs (state_since) WHERE state IN ('completed', 'failed', 'cancelled');

-- Files that no row speaks of any more, until they are gone.
CREATE TABLE removals (
    job_id TEXT NOT NULL,
    -- logs | artifacts: all of the job's; artifact: the one that the other columns name
    files TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    path TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, files, attempt, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    job_id TEXT NOT NULL REFERENCES jobs (id),
    attempt INTEGER NOT NULL,
    worker_id TEXT NOT NULL,
    worker_name TEXT NOT NULL,
    -- SHA-256 of the attempt's job token, in hex
    token_digest TEXT NOT NULL UNIQUE,
    -- how many GPUs it was granted
    gpus INTEGER NOT NULL,
    offered_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    -- completed | failed | cancelled | lost | expired
    outcome TEXT,
    error TEXT,
    exit_code INTEGER,
    -- the step of the checkpoint that it went on from
    resumed_from_step INTEGER,
    -- the newest point of progress, an object
    progress TEXT,
    PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;

-- What lately became of attempts, and what became of a worker's.
CREATE INDEX attempts_ended ON attempts (ended_at);

CREATE INDEX attempts_by_worker ON attempts (worker_id, offered_at);

CREATE TABLE points (
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    step INTEGER NOT NULL,
    -- loss, learning rate and so on, an object
    point TEXT NOT NULL,
    PRIMARY KEY (job_id, attempt, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
    job_id TEXT NOT NULL REFERENCES jobs (id),
    path TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    -- final | checkpoint | sample | other
    kind TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, path, attempt)
) STRICT, WITHOUT ROWID;

-- Checkpoints of which every file arrived. The files are artifacts.
CREATE TABLE checkpoints (
    job_id TEXT NOT NULL REFERENCES jobs (id),
    attempt INTEGER NOT NULL,
    -- the directory's name
    name TEXT NOT NULL,
    -- at which step it was made
    step INTEGER NOT NULL,
    -- each file with its size and SHA-256, a list
    files TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, attempt, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE config_revisions (
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    -- text by path, an object
    files TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (name, revision)
) STRICT, WITHOUT ROWID;

-- The configurations that can be submitted, each at its newest revision.
CREATE TABLE configs (
    name TEXT PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- viewer | researcher | lead | admin
    role TEXT NOT NULL,
    -- Argon2id, as a PHC string; without one nobody logs in with a password
    password_hash TEXT,
    created_at INTEGER NOT NULL,
    -- since when nothing of this person's opens anything
    disabled_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE api_tokens (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    -- SHA-256 of the token, in hex
    digest TEXT NOT NULL UNIQUE,
    -- the permissions that it is for, a list; NULL for all that its owner has
    scopes TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    -- when it was last used; written in batches
    used_at INTEGER,
    UNIQUE (user_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
    -- the name of whose jobs are given it; empty for everybody's
    owner TEXT NOT NULL,
    -- of the variable
    name TEXT NOT NULL,
    -- the value, encrypted, in hex
    sealed TEXT NOT NULL,
    -- which key it is encrypted with
    key_id TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    -- when a job was last given it
    given_at INTEGER,
    PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    -- SHA-256 of the cookie, in hex
    digest TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- the API token that opened it: it ends with that, and can do no more
    token_id TEXT,
    -- the host and the browser that opened it, as they said
    host TEXT NOT NULL,
    agent TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- when its password, or the token that opened it, was last given
    proved_at INTEGER NOT NULL,
    -- when it was last used; written in batches
    seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which job a submit with an Idempotency-Key made, so that a repeat makes no second one.
CREATE TABLE idempotency_keys (
    -- who sent it
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    -- SHA-256 of the submit, in hex: another submit with the same key is an error
    digest TEXT NOT NULL,
    job_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (actor, key)
) STRICT, WITHOUT ROWID;

-- The server's own secrets and switches.
CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    -- one chain for each server process
    chain TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail TEXT NOT NULL,
    request_id TEXT,
    -- the hash of the entry before it, in hex; empty for the first
    previous TEXT NOT NULL,
    -- SHA-256 over every field before it, in hex
    hash TEXT NOT NULL,
    PRIMARY KEY (chain, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_by_time ON audit (at, chain, seq);
CREATE INDEX audit_by_target ON audit (target, at, chain, seq);
CREATE INDEX audit_by_actor ON audit (actor, at, chain, seq);
CREATE INDEX audit_by_action ON audit (action, at, chain, seq);
CREATE INDEX audit_by_request ON audit (request_id, at, chain, seq) WHERE request_id IS NOT NULL;

-- What is kept of each chain beside its entries, so that cutting off its end or its beginning is found.
CREATE TABLE audit_heads (
    chain TEXT PRIMARY KEY,
    -- its newest entry
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    -- the last entry that was removed because of its age; 0 and empty if none was
    removed_seq INTEGER NOT NULL DEFAULT 0,
    removed_hash TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
