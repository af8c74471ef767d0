//! Limits how many pages are rendered at once, and renders each to completion.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::http::request_context::run_to_completion;

/// Clients that open pages and leave occupy at most this many renderings: a quarter of a second on two cores.
const MAX_CONCURRENT: usize = 16;

/// The permits for rendering pages.
#[derive(Debug, Clone)]
pub struct RenderLimiter(Arc<Semaphore>);

impl Default for RenderLimiter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CONCURRENT)))
    }
}

impl RenderLimiter {
    /// Renders a page once a permit is free, and to completion even if the client disconnects: its requests
    /// run in tasks of their own, and these read state that would be dropped with it. A client that
    /// disconnects earlier costs nothing.
    pub async fn run_to_completion<T: Send + 'static>(&self, page: impl Future<Output = T> + Send + 'static) -> T {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        let render = async move {
            let response = page.await;
            drop(permit);
            response
        };
        run_to_completion(render).await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn started_renderings_finish_and_waiting_ones_never_start() {
        let limiter = RenderLimiter::default();
        let (mut senders, mut results) = (Vec::new(), Vec::new());
        for _ in 0..=MAX_CONCURRENT {
            let (sender, receiver) = oneshot::channel::<()>();
            let (result_sender, result) = oneshot::channel();
            let page = async move {
                drop(receiver.await);
                let _finished = result_sender.send(());
            };
            assert!(poll!(Box::pin(limiter.run_to_completion(page))).is_pending(), "the client disconnects");
            senders.push(sender);
            results.push(result);
        }
        assert!(results.pop().expect("one more than permits").await.is_err(), "it never started");
        drop(senders);
        for result in results {
            result.await.expect("it finished");
        }
        assert_eq!(limiter.run_to_completion(async { 7 }).await, 7, "a permit is free again");
    }
}
