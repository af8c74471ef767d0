//! Work that other threads do for a task.
//!
//! In a simulation (feature `simulation`), a task waits for it without letting time pass or another task run: so the same
//! seed always leads to the same order of events.

use std::io;

/// Runs `work`, which blocks for a disk or takes long to compute, beside the event loop.
///
/// # Errors
/// If it panics, or the runtime stops.
#[cfg(not(feature = "simulation"))]
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(work).await
}

/// Runs `work` at once.
///
/// # Errors
/// Never.
#[cfg(feature = "simulation")]
#[expect(clippy::unused_async, reason = "the same signature as outside a simulation")]
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    Ok(work())
}

/// Runs file I/O beside the event loop: a hung disk must not block anything else.
///
/// # Errors
/// Those of `work`; also if it panics, or the runtime stops.
pub async fn run_io<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    run_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Waits for a future that a thread of a database driver completes.
#[cfg(not(feature = "simulation"))]
pub fn wait_for_thread<F: Future>(future: F) -> F {
    future
}

/// Waits for a future that a thread of a database driver completes, and blocks this thread meanwhile.
#[cfg(feature = "simulation")]
#[expect(clippy::unused_async, reason = "the same signature as outside a simulation")]
pub async fn wait_for_thread<F: Future>(future: F) -> F::Output {
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::Thread;

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
