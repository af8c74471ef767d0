-- The jobs that retry or fork another one.
CREATE INDEX jobs_retry_of ON jobs (retry_of) WHERE retry_of IS NOT NULL;

-- The best values of an attempt's metrics with their steps, as JSON: {"loss": [0.25, 400]}.
ALTER TABLE attempts ADD COLUMN best_metrics TEXT;
