//! Shutdown of the server.

use app::logging::background_writer;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels the token at the first SIGTERM or SIGINT; a second one ends the process immediately.
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
        tracing::info!("stopping; a second signal exits immediately");
        shutdown.cancel();
        let code = next().await;
        background_writer::flush();
        std::process::exit(code);
    });
    Ok(())
}
