//! Decides whether the host, not the job, caused a failure.

use app::domain::host_failure_guard::{AttemptEvidence, FAST_FAILURE};
use app::domain::text::split_headline;
use app::protocol::agents::StatusReport;

use super::AttemptRunner;
use super::prepare::host_fault_exit;
use crate::worker::files::AttemptExit;

impl AttemptRunner {
    /// # Errors
    /// If this host is unhealthy; the job is requeued for another host.
    pub(super) fn check_host_health(&self) -> Result<(), AttemptExit> {
        self.context.host_health.unhealthy_reason().map_or(Ok(()), |reason| Err(host_fault_exit(&reason)))
    }

    /// Requeues the job without using up a retry if the host caused its end.
    pub(super) async fn requeue_if_host_fault(&self, report: StatusReport, exit: &AttemptExit) -> StatusReport {
        let host_health = &self.context.host_health;
        let config = self.spec.offer.config_name.clone();
        let evidence = self.evidence(&config, &report, exit);
        let failed_at_once = matches!(evidence, AttemptEvidence::FailedFast { .. });
        if failed_at_once {
            // The trainer may have been removed since the agent started.
            host_health.recheck().await;
        }
        host_health.record_exit(evidence);
        let never_started = exit.host_fault && self.started_at.get().is_none();
        match host_health.unhealthy_reason().filter(|_| failed_at_once || never_started) {
            Some(reason) => StatusReport { unhealthy_reason: Some(reason), ..self.as_requeued(report) },
            None => report,
        }
    }

    fn as_requeued(&self, report: StatusReport) -> StatusReport {
        StatusReport { error: report.error, exit_code: report.exit_code, ..self.key().status_report("requeue") }
    }

    fn evidence<'e>(&self, config: &'e str, report: &'e StatusReport, exit: &AttemptExit) -> AttemptEvidence<'e> {
        // The run time of a trainer that an earlier agent started is unknown.
        let run_time = self.started_at.get().map(|started_at| exit.ended_at - *started_at);
        match (report.status.as_str(), run_time) {
            ("completed", _) => AttemptEvidence::Ran,
            ("failed", Some(run_time)) if run_time >= FAST_FAILURE => AttemptEvidence::Ran,
            ("failed", Some(_)) if exit.stopped.is_none() => {
                let (error, _) = split_headline(report.error.as_deref().unwrap_or_default());
                AttemptEvidence::FailedFast { config, error }
            }
            _ => AttemptEvidence::Inconclusive,
        }
    }
}
