-- Who stored each revision of a configuration, and whose the configuration is. What is known of revisions that are there
-- stands in the audit trail: `ada/ci` is ada, with a token.
ALTER TABLE config_revisions ADD COLUMN created_by TEXT;
-- Whose the configuration is: the author of its first revision; NULL if nobody knows.
ALTER TABLE config_revisions ADD COLUMN owner TEXT;

UPDATE config_revisions SET created_by = (
    SELECT split_part(actor, '/', 1) FROM audit
    WHERE action = 'config.stored' AND target = config_revisions.name
        AND detail LIKE '{"revision":' || config_revisions.revision || ',%'
    ORDER BY at LIMIT 1
);

UPDATE config_revisions SET owner = (
    SELECT earliest.created_by FROM config_revisions AS earliest
    WHERE earliest.name = config_revisions.name AND earliest.revision = 1
);

-- Whether a job is given shared secrets only: somebody submitted it again for another, and named none of their own.
ALTER TABLE jobs ADD COLUMN shared_secrets_only BIGINT NOT NULL DEFAULT 0;

-- Which revision somebody ran last.
CREATE INDEX jobs_by_config ON jobs (config_name, submitted_by, config_revision);

-- How much one person has stored.
CREATE INDEX config_revisions_by_person ON config_revisions (created_by, bytes);
