//! Checks the granted GPUs: healthy before the trainer starts, and free before the end is reported.

use super::AttemptRunner;
use super::prepare::host_fault_exit;
use crate::worker::files::AttemptExit;
use crate::worker::process;

impl AttemptRunner {
    /// # Errors
    /// If a GPU is unhealthy; the job is requeued for another host.
    pub(super) async fn check_gpus(&self) -> Result<(), AttemptExit> {
        let result = self.context.gpus.preflight(&self.spec.offer.gpus).await;
        result.map_err(|reason| host_fault_exit(&reason))
    }

    /// Waits until no process uses the GPUs, up to a limit.
    pub(super) async fn wait_until_gpus_free(&self) {
        let marker = self.environment_marker();
        // In a container the PIDs may be those of the host. Then no such process exists here, and it is not counted as
        // foreign.
        let is_unrelated =
            |pid: u32| i32::try_from(pid).is_ok_and(|pid| process::has_environment_entry(pid, &marker) == Some(false));
        self.context.gpus.wait_until_free(&self.spec.offer.gpus, is_unrelated).await;
    }

    /// An environment entry that all processes of this attempt have, and no others.
    pub(super) fn environment_marker(&self) -> String {
        format!("SIMPLETUNER_STOP_FILE={}", self.dir.stop_file().display())
    }
}
