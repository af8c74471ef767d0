-- The number of a job among those of its configuration, from 1; NULL if a server before schema 16 created it.
ALTER TABLE jobs ADD COLUMN number INTEGER;
-- What users call a job: its name, its tags as a JSON array, and notes. The column of the name is not "name", which a
-- statement of earlier servers uses for something else.
ALTER TABLE jobs ADD COLUMN job_name TEXT;
ALTER TABLE jobs ADD COLUMN tags TEXT;
ALTER TABLE jobs ADD COLUMN notes TEXT;
CREATE INDEX jobs_by_number ON jobs (config_name, number);

-- The highest number of a removed job of each configuration, so that no number is used twice.
CREATE TABLE removed_job_numbers (
    config_name TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT;
