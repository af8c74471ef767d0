-- A page of the jobs of a configuration, the newest first.
CREATE INDEX jobs_of_config ON jobs (config_name, id);
