//! The pipes between the supervisor and the agent that has started it. If that agent dies, the next one has only the
//! files.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Waits until the agent has accepted the attempt and permits the trainer's start. Returns false if it has exited or
/// withdrawn.
///
/// # Errors
/// If standard input is no pipe.
pub async fn wait_for_permit() -> io::Result<bool> {
    let mut permits = Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    Ok(permits.read(&mut [0]).await.is_ok_and(|count| count > 0))
}

/// Tells the agent that the trainer is recorded. It finds the record by itself if it does not get this.
pub fn report_recorded() {
    let Ok(pipe) = io::stdout().as_fd().try_clone_to_owned() else { return };
    let _ = File::from(pipe).write_all(b"\n");
}
