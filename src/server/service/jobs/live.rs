//! What changes on a job's page while the job trains.

use app::domain::ids::{AttemptNumber, JobId};
use app::protocol::jobs::{JobLive, JobView, SeriesQuery};

use crate::service::Services;
use crate::service::error::ServiceError;

/// The maximum size of the log part in a live update, in bytes.
const MAX_LOG_BYTES: u32 = 64 << 10;

impl Services {
    pub async fn job_live(
        &self,
        id: &JobId,
        attempt: Option<AttemptNumber>,
        offset: Option<u64>,
    ) -> Result<JobLive, ServiceError> {
        let JobView { status, attempt: newest, progress, .. } = self.jobs.job_with_loss(id).await?;
        let metrics = self
            .jobs
            .job_metrics(id, SeriesQuery { attempt: attempt.map(|attempt| attempt.0), ..SeriesQuery::default() })
            .await?;
        let log = match metrics.attempt {
            AttemptNumber(0) => None,
            attempt => Some(self.logs.read_log(id, Some(attempt), offset, MAX_LOG_BYTES).await?),
        };
        Ok(JobLive { status, attempt: newest, progress, metrics, gpus: self.gpus.job_history(id).await?, log })
    }
}
