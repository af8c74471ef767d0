-- Views of the list of jobs that users have saved.
CREATE TABLE saved_views (
    -- Who saved it.
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The filters, the order and the columns, as the query string of the list.
    query TEXT NOT NULL,
    -- 1 if all users see it, else 0.
    shared BIGINT NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (owner, name)
);
CREATE INDEX saved_views_shared ON saved_views (shared, name);

-- The users who have starred a job, as a JSON array; NULL if there are none.
ALTER TABLE jobs ADD COLUMN starred_by TEXT;
