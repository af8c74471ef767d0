-- The line of an attempt's log that says why it failed, from 1; NULL if nobody knows.
ALTER TABLE attempts ADD COLUMN error_line INTEGER;
