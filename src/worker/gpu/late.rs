//! GPUs whose driver comes after the agent: a module that is loaded late, a container toolkit that is installed meanwhile.
//! What hardware there is stands in all that the agent has said and decided, so an agent that has nothing to do begins anew.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::gate::Look;
use super::{Hardware, as_told, provider};
use crate::config::Config;
use crate::session::Context;
use crate::state::Input;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);

/// Whether it makes sense to look again: there is none, nobody has said how many there are, and looking is cheap.
pub fn may_come(hardware: &Hardware, config: &Config) -> bool {
    hardware.gpus.is_empty() && config.gpu.count.is_none() && !cfg!(target_os = "macos")
}

/// Looks every few seconds until nobody is left to ask, and tells of what has come.
pub fn watch(config: &Config, asked: &Receiver<oneshot::Sender<Look>>, tell: impl Fn()) {
    loop {
        match asked.recv_timeout(PERIOD) {
            // There is nothing to be seen.
            Ok(ask) => drop(ask.send(Ok(Vec::new()))),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let (_, found) = provider::find_saying(|kind, why| tracing::debug!("still no {kind} GPUs: {why}"));
                if !as_told(found, &config.gpu, &config.host).gpus.is_empty() {
                    tell();
                }
            }
        }
    }
}

/// Tells the agent's loop, each time that they are seen: it may have jobs to see through first.
pub fn tell_of_late_ones(context: &Arc<Context>, inbox: mpsc::Sender<Input>) {
    let context = Arc::clone(context);
    tokio::task::spawn_local(async move {
        context.gpus.came().await;
        tracing::info!("GPUs have come: beginning anew as soon as nothing runs");
        loop {
            if inbox.send(Input::GpusCame).await.is_err() {
                return;
            }
            context.gpus.came().await;
        }
    });
}
