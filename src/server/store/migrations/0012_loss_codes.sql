-- Why an attempt was lost, as a code; NULL if it was not, or was lost before this migration.
ALTER TABLE attempts ADD COLUMN loss_code TEXT;

-- A job that the worker ran when it fell silent, while it is offline; NULL if none.
ALTER TABLE workers ADD COLUMN lost_job TEXT;

-- The database has the codes of the audit log: heartbeat_timeout | disconnected | token_rotated, when offline.
UPDATE workers SET offline_cause = 'heartbeat_timeout' WHERE offline_cause = 'silent';
