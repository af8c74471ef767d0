-- The jobs that the worker ran when it fell silent, while it is offline: a JSON list of their IDs; NULL if none.
ALTER TABLE workers RENAME COLUMN lost_job TO lost_jobs;
UPDATE workers SET lost_jobs = '["' || lost_jobs || '"]' WHERE lost_jobs IS NOT NULL;
