-- Teams, which share the fleet. Everybody is in the team `default`, which needs no row.
CREATE TABLE teams (
    name TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- What the team may use, as JSON: weight, guaranteed_gpus and limits.
    settings TEXT NOT NULL,
    -- The members by the name of the user, as JSON: since when, and what they may use.
    members TEXT NOT NULL
) STRICT;

-- What members of teams have used until `used_until`; what their running jobs use since then is added to it.
CREATE TABLE share_usage (
    -- The team and the user: `vision/ada`.
    id TEXT PRIMARY KEY,
    used_until INTEGER NOT NULL,
    -- GPU time and time of slots in milliseconds, which decay.
    gpu_time REAL NOT NULL,
    slot_time REAL NOT NULL,
    -- GPU time in the calendar month of `used_until`, in milliseconds.
    month_gpu_time REAL NOT NULL
) STRICT;

-- The team that a job counts for, and its class: urgent, normal or idle. Without them: default and normal.
ALTER TABLE jobs ADD COLUMN team TEXT;
ALTER TABLE jobs ADD COLUMN class TEXT;
-- When the newest attempt was offered.
ALTER TABLE jobs ADD COLUMN leased_at INTEGER;
-- For a waiting job: the attempts that are stopped so that it can start, as JSON.
ALTER TABLE jobs ADD COLUMN preemption TEXT;
-- When the job was last stopped for another one, as JSON; at most three times.
ALTER TABLE jobs ADD COLUMN preempted_at TEXT;
-- The time in milliseconds since the previous checkpoint of the attempt, or since its trainer started.
ALTER TABLE checkpoints ADD COLUMN since_previous INTEGER;
