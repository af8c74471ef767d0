//! Waits for GPUs whose driver is installed after the agent started: a module that is loaded late, or a container
//! toolkit. The hardware determines much of what the agent has reported and decided, so it restarts once it is idle.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::health::GpuPoll;
use super::{GpuMonitor, Hardware, apply_restrictions, provider};
use crate::worker::config::AgentConfig;
use crate::worker::state::AgentInput;

const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Whether to search again: there is no GPU, none is configured, and a search is cheap.
pub fn may_appear_later(hardware: &Hardware, config: &AgentConfig) -> bool {
    hardware.gpus.is_empty() && config.gpu.count.is_none() && !cfg!(target_os = "macos")
}

/// Searches periodically until all senders are dropped, and reports new GPUs.
pub fn wait_for_gpus(config: &AgentConfig, requests: &Receiver<oneshot::Sender<GpuPoll>>, notify: impl Fn()) {
    loop {
        match requests.recv_timeout(POLL_INTERVAL) {
            // There is nothing to poll.
            Ok(request) => drop(request.send(Ok(Vec::new()))),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let (_, found) =
                    provider::detect_provider_with(|kind, error| tracing::debug!("still no {kind} GPUs: {error}"));
                if !apply_restrictions(found, &config.gpu, &config.hostname).gpus.is_empty() {
                    notify();
                }
            }
        }
    }
}

/// Tells the agent's loop each time new GPUs are found, because it may have to finish jobs first.
pub async fn forward_added_gpus(gpus: &GpuMonitor, inbox: mpsc::Sender<AgentInput>) {
    gpus.gpus_added().await;
    tracing::info!("found GPUs: restarting as soon as nothing runs");
    while inbox.send(AgentInput::GpusAdded).await.is_ok() {
        gpus.gpus_added().await;
    }
}
