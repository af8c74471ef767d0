//! Completes chunked uploads. That may take longer than the client waits: a repeated request waits for the same work
//! instead of starting it again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use app::protocol::agents::ArtifactAck;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use crate::files::uploads::UploadTarget;
use crate::service::error::ServiceError;

/// The result for all waiting requests.
pub type FinalizeResult = Result<ArtifactAck, ServiceError>;

#[derive(Clone, Default)]
pub struct UploadFinalizer(Arc<Mutex<HashMap<UploadTarget, Shared<BoxFuture<'static, FinalizeResult>>>>>);

impl UploadFinalizer {
    /// Waits for the work in progress, or starts this one, which continues if the client disconnects.
    pub async fn run_once(
        &self,
        target: &UploadTarget,
        work: impl Future<Output = FinalizeResult> + Send + 'static,
    ) -> FinalizeResult {
        let result = {
            let mut in_progress = self.0.lock().expect("no panic while it is held");
            in_progress.entry(target.clone()).or_insert_with(|| self.start(target.clone(), work)).clone()
        };
        result.await
    }

    fn start(
        &self,
        target: UploadTarget,
        work: impl Future<Output = FinalizeResult> + Send + 'static,
    ) -> Shared<BoxFuture<'static, FinalizeResult>> {
        let this = self.clone();
        let task = tokio::spawn(work);
        // Whatever the result, the next request starts again.
        let completion = tokio::spawn(async move {
            let outcome = task.await.unwrap_or_else(|error| Err(ServiceError::FilesUnavailable(error.to_string())));
            this.0.lock().expect("no panic while it is held").remove(&target);
            outcome
        });
        async move { completion.await.unwrap_or_else(|error| Err(ServiceError::FilesUnavailable(error.to_string()))) }
            .boxed()
            .shared()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use app::domain::ids::{AttemptNumber, JobId};
    use app::domain::time::Timestamp;
    use tokio::sync::Semaphore;

    use super::*;

    fn target(path: &str) -> UploadTarget {
        let job = JobId::new(Timestamp(0), [0; 10]);
        UploadTarget { job, attempt: AttemptNumber(1), path: path.to_owned(), size: 1, sha256: String::new() }
    }

    #[tokio::test]
    async fn repeated_request_waits_for_work_in_progress() {
        let (finalizer, proceed, started) =
            (UploadFinalizer::default(), Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
        let work = || {
            let (proceed, started) = (Arc::clone(&proceed), Arc::clone(&started));
            async move {
                let number = started.fetch_add(1, Ordering::SeqCst) + 1;
                proceed.acquire().await.expect("open").forget();
                Err(ServiceError::ArtifactNotFound(number.to_string()))
            }
        };
        let (a, b) = (target("a"), target("b"));
        let others = async {
            let other = finalizer.run_once(&b, async { Err(ServiceError::NotAuthenticated) }).await;
            assert_eq!(other, Err(ServiceError::NotAuthenticated), "another file is independent");
            proceed.add_permits(1);
        };
        let all = futures_util::future::join_all((0..3).map(|_| finalizer.run_once(&a, work())));
        let both = tokio::time::timeout(Duration::from_secs(10), async { tokio::join!(all, others) });
        let (all, ()) = both.await.expect("one of them was started");
        assert_eq!(all, vec![Err(ServiceError::ArtifactNotFound("1".to_owned())); 3]);
        proceed.add_permits(1);
        assert_eq!(finalizer.run_once(&a, work()).await, Err(ServiceError::ArtifactNotFound("2".to_owned())));
        let panicked = finalizer.run_once(&a, async { panic!("a defect") }).await;
        assert!(matches!(panicked, Err(ServiceError::FilesUnavailable(_))), "{panicked:?}");
        assert!(finalizer.0.lock().expect("open").is_empty(), "nothing stays");
    }

    #[tokio::test]
    async fn work_continues_without_waiting_requests() {
        let (finalizer, done) = (UploadFinalizer::default(), Arc::new(Semaphore::new(0)));
        let (proceed, finished) = (Arc::new(Semaphore::new(0)), Arc::clone(&done));
        let may_proceed = Arc::clone(&proceed);
        let work = async move {
            may_proceed.acquire().await.expect("open").forget();
            finished.add_permits(1);
            Err(ServiceError::NotAuthenticated)
        };
        let a = target("a");
        let result = tokio::time::timeout(Duration::ZERO, finalizer.run_once(&a, work)).await;
        assert!(result.is_err(), "the caller stops waiting");
        proceed.add_permits(1);
        done.acquire().await.expect("it completes nevertheless").forget();
    }
}
