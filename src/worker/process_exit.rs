//! Waits for the exit of a process that need not be a child.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::worker::process::ProcId;

impl ProcId {
    /// Waits until it has exited.
    ///
    /// # Errors
    /// If the kernel cannot notify about that: Linux before 5.3, or a filter of system calls.
    pub async fn wait_for_exit(self) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(()) };
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(()),
            #[expect(deprecated, reason = "an owned descriptor is sound; what replaces it is unsafe for all types")]
            process => AsyncFd::with_interest(process?, Interest::READABLE)?,
        };
        // The PID may be another process's by now.
        if self.check_alive()? {
            process.readable().await?.retain_ready();
        }
        Ok(())
    }
}
