-- The rows that each generation has changed, of those that servers cache: other servers read only these again. Empty on
-- SQLite, which serves one server.
CREATE TABLE generation_changes (
    generation BIGINT PRIMARY KEY,
    -- by the clock of the database
    at BIGINT NOT NULL,
    -- their keys, an object
    changed_rows TEXT NOT NULL
);
