//! Who does what only one of the servers on a database may do: judge workers, and sweep.

use std::sync::{Arc, Mutex};

use app::domain::time::Timestamp;
use app::protocol::topic::Topic;

use super::Core;
use super::refusal::Refusal;
use crate::store::{News, Work};

/// Since when this server leads, if it does, and since when it cannot know because the database is away.
#[derive(Default)]
pub struct Leadership {
    since: Mutex<Option<Timestamp>>,
    away: Mutex<Option<Timestamp>>,
}

impl Leadership {
    /// Since when it leads.
    pub fn held_since(&self) -> Option<Timestamp> {
        *self.since.lock().expect("no panic while it is held")
    }

    /// Since when the database has not answered; it is tried again and again.
    pub fn database_away_since(&self) -> Option<Timestamp> {
        *self.away.lock().expect("no panic while it is held")
    }

    fn note_database(&self, answers: bool, now: Timestamp) {
        let mut away = self.away.lock().expect("no panic while it is held");
        *away = if answers { None } else { away.or(Some(now)) };
    }

    fn set(&self, leads: bool, now: Timestamp) {
        let mut since = self.since.lock().expect("no panic while it is held");
        if leads != since.is_some() {
            tracing::info!(leads, "the leadership changed");
            *since = leads.then_some(now);
        }
    }
}

impl Core {
    /// Says that this server lives, renews or seeks the leadership, and, as the leader, forgets the streams of servers
    /// that are gone.
    pub async fn take_part(self: &Arc<Self>) -> Result<(), Refusal> {
        let found = Arc::new(Mutex::new((Vec::new(), false)));
        let note = Arc::clone(&found);
        let (life, term) = (self.policy.server_life, self.policy.leader_term);
        let work: Work = Box::new(move |tx| {
            let note = Arc::clone(&note);
            Box::pin(async move {
                let living = tx.living_servers(life).await?;
                let leads = tx.lead(term).await?;
                *note.lock().expect("no panic while it is held") = (living, leads);
                Ok(())
            })
        });
        let written = self.store.write(work).await;
        let (living, leads) = std::mem::take(&mut *found.lock().expect("no panic while it is held"));
        self.leadership.note_database(written.is_ok(), self.now());
        // Who cannot reach the database does not know whether it still leads.
        self.leadership.set(written.is_ok() && leads, self.now());
        written?;
        if leads { self.forget_streams(living).await } else { Ok(()) }
    }

    /// Reads all that lives into memory, so that who only looks finds it there from the first request on.
    pub async fn recall(&self) -> Result<(), Refusal> {
        Ok(self.store.write(Box::new(|tx| Box::pin(async move { tx.see(|_| ()).await }))).await?)
    }

    /// This server ends: another may lead at once.
    pub async fn leave(&self) -> Result<(), Refusal> {
        Ok(self.store.write(Box::new(|tx| Box::pin(async move { tx.leave().await }))).await?)
    }

    /// Waits for what other servers change, and rings here for it.
    pub async fn hear(&self) {
        match self.store.news().await {
            News::Lost => self.hub.resync(),
            News::Topics(topics) => self.hub.bump(topics.iter().filter_map(|topic| Topic::parse(topic))),
        }
    }
}
