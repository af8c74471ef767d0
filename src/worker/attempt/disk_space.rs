//! Checks the free disk space before anything of the job is fetched.

use super::AttemptRunner;
use super::prepare::host_fault_exit;
use crate::worker::files::AttemptExit;

impl AttemptRunner {
    /// # Errors
    /// If there is too little; the job is requeued for another host.
    pub(super) async fn check_disk_space(&self) -> Result<(), AttemptExit> {
        match self.context.disk_space.check_now().await {
            Some(reason) => Err(host_fault_exit(&format!("the worker has no disk space for a job: {reason}"))),
            None => Ok(()),
        }
    }
}
