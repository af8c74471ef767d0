-- Standard terms for columns.
ALTER TABLE workers RENAME COLUMN link TO connection;
ALTER TABLE workers RENAME COLUMN link_since TO connection_since;
ALTER TABLE workers RENAME COLUMN link_stream TO connection_stream;
ALTER TABLE workers RENAME COLUMN spent_at TO retired_at;
ALTER TABLE workers RENAME COLUMN astray_job TO unassigned_job;
ALTER TABLE workers RENAME COLUMN token_made_at TO token_created_at;
ALTER TABLE workers RENAME COLUMN token_made_by TO token_created_by;
ALTER TABLE jobs RENAME COLUMN kept_back_until TO hold_until;
ALTER TABLE secrets RENAME COLUMN given_at TO delivered_at;
ALTER TABLE sessions RENAME COLUMN proved_at TO reauthenticated_at;
-- The same terms in what agents reported last, until they report again.
UPDATE workers SET capability = replace(replace(capability, '"unfit":', '"unhealthy_reason":'), '"withheld":', '"unavailable":');
UPDATE settings SET key = 'token_signing_key' WHERE key = 'job_token_key';
