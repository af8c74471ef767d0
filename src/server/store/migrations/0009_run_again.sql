-- Values of the configuration that the job changes, as a JSON object: key to [before, after], each JSON as
-- text or null; NULL if none.
ALTER TABLE jobs ADD COLUMN overrides TEXT;

-- Where a job that is run again begins: newest (as NULL), scratch, or job/attempt/checkpoint.
ALTER TABLE jobs ADD COLUMN start TEXT;
