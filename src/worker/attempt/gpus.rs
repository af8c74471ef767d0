//! The GPUs that the offer granted: fit before the trainer begins, and free before its end is reported.

use super::Attempt;
use super::prepare::host_fault;
use crate::files::Exit;

impl Attempt {
    /// # Errors
    /// If one is not fit: then the job is better off elsewhere.
    pub(super) async fn gpus_are_fit(&self) -> Result<(), Exit> {
        let fit = self.context.gpus.preflight(&self.spec.offer.gpus).await;
        fit.map_err(|sentence| host_fault(&sentence))
    }

    /// Waits, for as long as that makes sense.
    pub(super) async fn gpus_are_free(&self) {
        self.context.gpus.freed(&self.spec.offer.gpus).await;
    }
}
