//! Changes by other servers on the same database.

use app::protocol::topic::Topic;

use crate::service::system::SystemService;
use crate::store::ExternalChange;

impl SystemService {
    /// Waits for changes by other servers, and notifies the clients of this one.
    pub async fn follow_changes(&self) {
        match self.context.store.next_external_change().await {
            ExternalChange::Unknown => self.context.notifier.notify_all(),
            ExternalChange::Message(text) => self.access.apply_charges(&text),
            ExternalChange::Topics(topics) => {
                self.context.notifier.notify(topics.iter().filter_map(|topic| Topic::parse(topic)));
            }
        }
    }
}
