//! Files in pieces of which all bytes are here, while they are stored. That may take longer than whoever sent them waits: who
//! asks again meanwhile waits for the same, and does not begin it anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use app::protocol::worker::ArtifactAck;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use super::refusal::Refusal;
use crate::files::uploads::Aim;

/// What comes of it.
pub type Outcome = Result<ArtifactAck, Refusal>;

/// See the module.
#[derive(Clone, Default)]
pub struct Storing(Arc<Mutex<HashMap<Aim, Shared<BoxFuture<'static, Outcome>>>>>);

impl Storing {
    /// Waits for the one under way, or for this one, which goes on when nobody waits.
    pub async fn join(&self, aim: &Aim, work: impl Future<Output = Outcome> + Send + 'static) -> Outcome {
        let waits = {
            let mut under_way = self.0.lock().expect("no panic while it is held");
            under_way.entry(aim.clone()).or_insert_with(|| self.begun(aim.clone(), work)).clone()
        };
        waits.await
    }

    fn begun(
        &self,
        aim: Aim,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> Shared<BoxFuture<'static, Outcome>> {
        let this = self.clone();
        let task = tokio::spawn(work);
        // Whatever becomes of it, the next one begins anew.
        let ends = tokio::spawn(async move {
            let outcome = task.await.unwrap_or_else(|error| Err(Refusal::Files(error.to_string())));
            this.0.lock().expect("no panic while it is held").remove(&aim);
            outcome
        });
        async move { ends.await.unwrap_or_else(|error| Err(Refusal::Files(error.to_string()))) }.boxed().shared()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use app::domain::ids::{Attempt, JobId};
    use app::domain::time::Timestamp;
    use tokio::sync::Semaphore;

    use super::*;

    fn aim(path: &str) -> Aim {
        let job = JobId::new(Timestamp(0), [0; 10]);
        Aim { job, attempt: Attempt(1), path: path.to_owned(), size: 1, sha256: String::new() }
    }

    #[tokio::test]
    async fn who_asks_again_waits_for_what_is_under_way_and_nobody_for_what_has_ended() {
        let (storing, goes_on, begun) = (Storing::default(), Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
        let work = || {
            let (goes_on, begun) = (Arc::clone(&goes_on), Arc::clone(&begun));
            async move {
                let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
                goes_on.acquire().await.expect("open").forget();
                Err(Refusal::NoArtifact(number.to_string()))
            }
        };
        let (a, b) = (aim("a"), aim("b"));
        let others = async {
            let other = storing.join(&b, async { Err(Refusal::Nobody) }).await;
            assert_eq!(other, Err(Refusal::Nobody), "of another file it is another's");
            goes_on.add_permits(1);
        };
        let all = futures_util::future::join_all((0..3).map(|_| storing.join(&a, work())));
        let both = tokio::time::timeout(Duration::from_secs(10), async { tokio::join!(all, others) });
        let (all, ()) = both.await.expect("one of them was begun");
        assert_eq!(all, vec![Err(Refusal::NoArtifact("1".to_owned())); 3]);
        goes_on.add_permits(1);
        assert_eq!(storing.join(&a, work()).await, Err(Refusal::NoArtifact("2".to_owned())));
        let broken = storing.join(&a, async { panic!("a defect") }).await;
        assert!(matches!(broken, Err(Refusal::Files(_))), "{broken:?}");
        assert!(storing.0.lock().expect("open").is_empty(), "nothing stays");
    }

    #[tokio::test]
    async fn it_goes_on_when_nobody_waits() {
        let (storing, done) = (Storing::default(), Arc::new(Semaphore::new(0)));
        let (goes_on, says) = (Arc::new(Semaphore::new(0)), Arc::clone(&done));
        let waits = Arc::clone(&goes_on);
        let work = async move {
            waits.acquire().await.expect("open").forget();
            says.add_permits(1);
            Err(Refusal::Nobody)
        };
        let a = aim("a");
        let gone = tokio::time::timeout(Duration::ZERO, storing.join(&a, work)).await;
        assert!(gone.is_err(), "whoever asked has gone");
        goes_on.add_permits(1);
        done.acquire().await.expect("it ends all the same").forget();
    }
}
