//! Room on this host's disk, before anything of the job is fetched.

use super::Attempt;
use super::prepare::host_fault;
use crate::files::Exit;

impl Attempt {
    /// # Errors
    /// If there is too little: then the job is better off elsewhere.
    pub(super) async fn has_room(&self) -> Result<(), Exit> {
        match self.context.room.look().await {
            Some(why) => Err(host_fault(&format!("the worker has no room for a job: {why}"))),
            None => Ok(()),
        }
    }
}
