-- One row: the oldest schema whose servers still work on this database. A migration that only adds leaves it; one that
-- removes or changes what earlier servers use raises it.
CREATE TABLE generation (
    oldest_schema INTEGER NOT NULL
) STRICT;
INSERT INTO generation (oldest_schema) VALUES (13);
