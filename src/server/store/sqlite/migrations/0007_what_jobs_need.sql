-- When an older agent reported the end of a job: it is offered the next one a moment later.
ALTER TABLE workers ADD COLUMN finishing_since INTEGER;

-- Files that the job's configuration names beside its data loader, as a JSON list; NULL if nobody looked. Older agents are
-- not sent them.
ALTER TABLE jobs ADD COLUMN files TEXT;

-- Names of directories of the host that the job's configuration needs, as a JSON list; NULL if nobody looked.
ALTER TABLE jobs ADD COLUMN paths TEXT;
