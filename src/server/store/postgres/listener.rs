//! Changes by other servers on the same database.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::store::ExternalChange;
use crate::store::sql::group::CHANNEL;

/// Tests whether notifications arrive on the channel; all servers ignore it.
const PROBE: &str = "NOTIFY simpletuner, 'listening'";
/// The delay before another try to listen.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A notification of another server, with the database generation it is about.
#[derive(Debug, PartialEq, Eq)]
pub struct PeerNotification {
    /// `None`: notifications may have been missed.
    pub generation: Option<i64>,
    pub change: ExternalChange,
}

impl PeerNotification {
    const UNKNOWN: Self = Self { generation: None, change: ExternalChange::Unknown };
}

/// Receives notifications of other servers.
pub struct NotificationListener {
    notifications: Mutex<mpsc::UnboundedReceiver<PeerNotification>>,
    task: JoinHandle<()>,
}

/// Starts to listen; notifications by this server (by its `chain`) are left out. `None` if nothing arrives within
/// `timeout`: a pooler that gives each transaction another connection cannot pass notifications on.
pub async fn listen(pool: &PgPool, chain: &str, timeout: Duration) -> sqlx::Result<Option<NotificationListener>> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    match tokio::time::timeout(timeout, check_loopback(&mut listener, pool)).await {
        // The notification was lost, or the connection that should have listened was another one.
        Err(_) | Ok(Err(sqlx::Error::Protocol(_))) => return Ok(None),
        Ok(result) => result?,
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    let task = tokio::spawn(receive(listener, chain.into(), sender));
    Ok(Some(NotificationListener { notifications: Mutex::new(receiver), task }))
}

/// Sends a notification and waits for it. One of another server that starts counts too.
async fn check_loopback(listener: &mut PgListener, pool: &PgPool) -> sqlx::Result<()> {
    // No parameters: a pooler may lose a prepared statement between packets.
    pool.execute(PROBE).await?;
    while listener.recv().await?.payload() != "listening" {}
    Ok(())
}

impl NotificationListener {
    /// Returns the next notification; never returns once closed.
    pub async fn next(&self) -> PeerNotification {
        match self.notifications.lock().await.recv().await {
            Some(notification) => notification,
            None => std::future::pending().await,
        }
    }

    pub fn close(&self) {
        self.task.abort();
    }
}

async fn receive(mut listener: PgListener, chain: Arc<str>, sender: mpsc::UnboundedSender<PeerNotification>) {
    loop {
        let notification = match listener.try_recv().await {
            Ok(Some(notification)) => parse_payload(notification.payload(), &chain),
            // It reconnects automatically; notifications sent meanwhile are lost.
            Ok(None) => Some(PeerNotification::UNKNOWN),
            Err(error) => {
                tracing::warn!(%error, "lost the connection for notifications of other servers; reconnecting");
                while listener.listen(CHANNEL).await.is_err() {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                // Reported after reconnecting, because notifications until then are lost too.
                Some(PeerNotification::UNKNOWN)
            }
        };
        if let Some(notification) = notification
            && sender.send(notification).is_err()
        {
            return;
        }
    }
}

/// In the place of the generation: a message follows.
const MESSAGE: &str = "message";

/// The notification with a message of this server.
pub fn message_payload(chain: &str, text: &str) -> String {
    format!("{chain} {MESSAGE} {text}")
}

/// Parses `<chain> <generation> <topic> <topic>…`, `<chain> <generation> *` if there were too many topics, or a message.
fn parse_payload(payload: &str, own_chain: &str) -> Option<PeerNotification> {
    let (chain, rest) = payload.split_once(' ')?;
    let (generation, topics) = rest.split_once(' ')?;
    if chain == own_chain {
        return None;
    }
    let change = match topics {
        text if generation == MESSAGE => ExternalChange::Message(text.to_owned()),
        "*" => ExternalChange::Unknown,
        _ => ExternalChange::Topics(topics.split(' ').map(str::to_owned).collect()),
    };
    Some(PeerNotification { generation: generation.parse().ok(), change })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_parsing() {
        let notification = |change| Some(PeerNotification { generation: Some(7), change });
        let topics = ExternalChange::Topics(vec!["jobs".to_owned(), "worker:w_1".to_owned()]);
        assert_eq!(parse_payload("c_2 7 jobs worker:w_1", "c_1"), notification(topics));
        assert_eq!(parse_payload("c_1 7 jobs", "c_1"), None);
        assert_eq!(parse_payload("c_2 7 *", "c_1"), notification(ExternalChange::Unknown));
        let message = ExternalChange::Message("a b\n* c".to_owned());
        let received = parse_payload(&message_payload("c_2", "a b\n* c"), "c_1");
        assert_eq!(received, Some(PeerNotification { generation: None, change: message }));
        assert_eq!(parse_payload(&message_payload("c_1", "a"), "c_1"), None);
        assert_eq!(parse_payload("nonsense", "c_1"), None);
        assert_eq!(PROBE, format!("NOTIFY {CHANNEL}, 'listening'"));
        assert_eq!(parse_payload("listening", "c_1"), None, "the loopback check of another server");
    }
}
