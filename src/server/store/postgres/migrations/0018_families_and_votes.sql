-- The jobs that retry or fork another one.
CREATE INDEX jobs_retry_of ON jobs (retry_of) WHERE retry_of IS NOT NULL;

-- The best values of an attempt's metrics with their steps, as JSON: {"loss": [0.25, 400]}.
ALTER TABLE attempts ADD COLUMN best_metrics TEXT;

-- Blind votes: which of two jobs has the better sample of the same prompt at the same step.
CREATE TABLE sample_votes (
    voter TEXT NOT NULL,
    -- The jobs, in the order of their IDs.
    first_job TEXT NOT NULL,
    second_job TEXT NOT NULL,
    step BIGINT NOT NULL,
    sample TEXT NOT NULL,
    -- 1 if the first one is better, 2 if the second one is, 0 if neither is.
    outcome BIGINT NOT NULL,
    voted_at BIGINT NOT NULL,
    PRIMARY KEY (voter, first_job, second_job, step, sample)
);
CREATE INDEX sample_votes_first ON sample_votes (first_job);
CREATE INDEX sample_votes_second ON sample_votes (second_job);

-- All votes on the samples of a job, as JSON: won, lost, tied.
ALTER TABLE jobs ADD COLUMN vote_tally TEXT;
