-- What a job and a person have used of what they may.

-- how many points the attempt has told
ALTER TABLE attempts ADD COLUMN points_seen INTEGER NOT NULL DEFAULT 0;
-- how many of them are kept, and how many bytes they have, at most
ALTER TABLE attempts ADD COLUMN points_kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN points_bytes INTEGER NOT NULL DEFAULT 0;
-- of so many points one is kept
ALTER TABLE attempts ADD COLUMN points_every INTEGER NOT NULL DEFAULT 1;
-- the step of a point that is kept only because it is the newest
ALTER TABLE attempts ADD COLUMN points_tail INTEGER;

-- the length of its files
ALTER TABLE config_revisions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE config_revisions SET bytes = octet_length(files);
