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

/// News, and which generation of the database they tell of.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    /// None: any may have come by.
    pub generation: Option<i64>,
    /// What changed.
    pub news: News,
}

impl Heard {
    const LOST: Self = Self { generation: None, news: News::Lost };
}

/// Where news arrive.
pub struct Inbox {
    news: Mutex<mpsc::UnboundedReceiver<Heard>>,
    task: JoinHandle<()>,
}

/// Starts to listen; what this server (by its `chain`) rings itself is left out.
pub async fn listen(pool: &PgPool, chain: &str) -> sqlx::Result<Inbox> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    let (sender, news) = mpsc::unbounded_channel();
    let task = tokio::spawn(hear(listener, chain.into(), sender));
    Ok(Inbox { news: Mutex::new(news), task })
}

impl Inbox {
    /// The next news; never, once it is closed.
    pub async fn next(&self) -> Heard {
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

async fn hear(mut listener: PgListener, chain: Arc<str>, news: mpsc::UnboundedSender<Heard>) {
    loop {
        let heard = match listener.try_recv().await {
            Ok(Some(notification)) => parsed(notification.payload(), &chain),
            // It reconnects by itself; what was rung meanwhile is lost.
            Ok(None) => Some(Heard::LOST),
            Err(error) => {
                tracing::warn!(%error, "the database does not tell what other servers change; trying again");
                while listener.listen(CHANNEL).await.is_err() {
                    tokio::time::sleep(AGAIN).await;
                }
                // Only now: what was rung until it listens again is lost too.
                Some(Heard::LOST)
            }
        };
        if let Some(heard) = heard
            && news.send(heard).is_err()
        {
            return;
        }
    }
}

/// `<chain> <generation> <topic> <topic>…`, or `<chain> <generation> *` where they would be too many.
fn parsed(payload: &str, own: &str) -> Option<Heard> {
    let (chain, rest) = payload.split_once(' ')?;
    let (generation, topics) = rest.split_once(' ')?;
    if chain == own {
        return None;
    }
    let news = match topics {
        "*" => News::Lost,
        _ => News::Topics(topics.split(' ').map(str::to_owned).collect()),
    };
    Some(Heard { generation: generation.parse().ok(), news })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard() {
        let heard = |news| Some(Heard { generation: Some(7), news });
        let topics = News::Topics(vec!["jobs".to_owned(), "worker:w_1".to_owned()]);
        assert_eq!(parsed("c_2 7 jobs worker:w_1", "c_1"), heard(topics));
        assert_eq!(parsed("c_1 7 jobs", "c_1"), None);
        assert_eq!(parsed("c_2 7 *", "c_1"), heard(News::Lost));
        assert_eq!(parsed("nonsense", "c_1"), None);
    }
}
