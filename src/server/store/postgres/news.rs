//! What other servers on the same database have changed.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::store::News;

/// The channel on which servers ring for each other.
pub const CHANNEL: &str = "simpletuner";
/// Between attempts to listen again.
const AGAIN: Duration = Duration::from_secs(1);

/// Where news arrive.
pub struct Inbox {
    news: Mutex<mpsc::UnboundedReceiver<News>>,
    task: JoinHandle<()>,
}

/// Starts to listen; what this server (by its `chain`) rings itself is left out.
pub async fn listen(pool: &PgPool, chain: Arc<str>) -> sqlx::Result<Inbox> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    let (sender, news) = mpsc::unbounded_channel();
    let task = tokio::spawn(hear(listener, chain, sender));
    Ok(Inbox { news: Mutex::new(news), task })
}

impl Inbox {
    /// The next news; never, once it is closed.
    pub async fn next(&self) -> News {
        match self.news.lock().await.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// Stops listening.
    pub fn close(&self) {
        self.task.abort();
    }
}

async fn hear(mut listener: PgListener, chain: Arc<str>, news: mpsc::UnboundedSender<News>) {
    loop {
        let heard = match listener.try_recv().await {
            Ok(Some(notification)) => parsed(notification.payload(), &chain),
            // It reconnects by itself; what was rung meanwhile is lost.
            Ok(None) => Some(News::Lost),
            Err(error) => {
                tracing::warn!(%error, "the database does not tell what other servers change; trying again");
                tokio::time::sleep(AGAIN).await;
                Some(News::Lost)
            }
        };
        if let Some(heard) = heard
            && news.send(heard).is_err()
        {
            return;
        }
    }
}

/// `<chain> <topic> <topic>…`, or `<chain> *` where they would be too many.
fn parsed(payload: &str, own: &str) -> Option<News> {
    let (chain, topics) = payload.split_once(' ')?;
    match topics {
        _ if chain == own => None,
        "*" => Some(News::Lost),
        _ => Some(News::Topics(topics.split(' ').map(str::to_owned).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard() {
        let topics = |list: &[&str]| Some(News::Topics(list.iter().map(|topic| (*topic).to_owned()).collect()));
        assert_eq!(parsed("c_2 jobs worker:w_1", "c_1"), topics(&["jobs", "worker:w_1"]));
        assert_eq!(parsed("c_1 jobs", "c_1"), None);
        assert_eq!(parsed("c_2 *", "c_1"), Some(News::Lost));
        assert_eq!(parsed("nonsense", "c_1"), None);
    }
}
