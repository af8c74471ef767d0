//! The GPUs that the offer granted: fit before the trainer begins, and free before its end is reported.

use super::Attempt;
use super::prepare::host_fault;
use crate::files::Exit;
use crate::process;

impl Attempt {
    /// # Errors
    /// If one is not fit: then the job is better off elsewhere.
    pub(super) async fn gpus_are_fit(&self) -> Result<(), Exit> {
        let fit = self.context.gpus.preflight(&self.spec.offer.gpus).await;
        fit.map_err(|sentence| host_fault(&sentence))
    }

    /// Waits, for as long as that makes sense.
    pub(super) async fn gpus_are_free(&self) {
        let marker = self.marker();
        // In a container the ids may be the host's: then there is no such process here, and nobody is taken for a stranger.
        let is_stranger = |pid: u32| i32::try_from(pid).is_ok_and(|pid| process::carries(pid, &marker) == Some(false));
        self.context.gpus.freed(&self.spec.offer.gpus, is_stranger).await;
    }

    /// What every process of this attempt has in its environment, and no other.
    pub(super) fn marker(&self) -> String {
        format!("SIMPLETUNER_STOP_FILE={}", self.dir.stop_file().display())
    }
}
