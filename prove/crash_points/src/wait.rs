//! Waits for states of programs that do not announce them.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// How often a state is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The upper limit of any wait.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Polls until the condition holds.
pub fn wait_for(condition: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + TIMEOUT;
    while !holds()? {
        ensure!(Instant::now() < end, "timed out waiting for {condition}");
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
