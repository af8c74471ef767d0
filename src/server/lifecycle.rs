//! How the server is told to stop.

use app::logging::queue;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels the token at the first SIGTERM or SIGINT; a second one ends the process at once.
pub fn stop_on_signals(shutdown: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => 143,
                _ = interrupt.recv() => 130,
            }
        };
        next().await;
        tracing::info!("stopping; a second signal ends at once");
        shutdown.cancel();
        let code = next().await;
        queue::flush();
        std::process::exit(code);
    });
    Ok(())
}
