-- The oldest schema whose servers still work on this database. A migration that only adds leaves it; one that removes or
-- changes what earlier servers use raises it. It is in this row because each group of writes locks it.
ALTER TABLE generation ADD COLUMN oldest_schema BIGINT NOT NULL DEFAULT 13;

-- The version of the server's program, and the newest schema that it knows. Servers before schema 15 do not write them.
ALTER TABLE servers ADD COLUMN version TEXT;
ALTER TABLE servers ADD COLUMN known_schema BIGINT NOT NULL DEFAULT 13;
