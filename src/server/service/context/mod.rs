//! What every use case needs.

pub mod disk_space;
pub mod leadership;
pub mod presence;

use std::sync::{Arc, Mutex, PoisonError};

use app::domain::ids::{Entropy, JobId, next_unique};
use app::domain::time::Timestamp;

use self::disk_space::DiskSpaceGuard;
use self::leadership::Leadership;
use self::presence::Presence;
use super::error::ServiceError;
use super::policy::ServerPolicy;
use crate::change_notifier::ChangeNotifier;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::store::{Store, Tx};
use crate::vault::Vault;

/// The database, clock, randomness and settings, and what this server keeps in memory. State changes go through
/// [`ServiceContext::change`](super::unit_of_work).
pub struct ServiceContext {
    pub store: Arc<dyn Store>,
    /// Sends change notifications.
    pub notifier: ChangeNotifier,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    /// Settings.
    pub policy: ServerPolicy,
    /// Identifies this process among the servers of a database: its audit chain.
    pub server: String,
    /// Whether this server is the leader.
    pub leadership: Leadership,
    /// Last contacts of workers.
    pub presence: Presence,
    /// Free disk space.
    pub disk_space: DiskSpaceGuard,
    /// Encrypts secrets of jobs and users.
    pub vault: Vault,
    /// The key from which job tokens are derived.
    pub token_signing_key: Vec<u8>,
    /// Counters.
    pub metrics: Metrics,
    /// The source of the last job's id.
    pub(super) last_job_id: Mutex<(Timestamp, Entropy)>,
}

impl ServiceContext {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Randomness for an id.
    pub fn entropy(&self) -> Entropy {
        self.random.bytes()
    }

    /// Creates a job id. Ids of this server sort in the order of their creation, which is that of the queue.
    pub fn next_job_id(&self) -> JobId {
        let mut last = self.last_job_id.lock().unwrap_or_else(PoisonError::into_inner);
        *last = next_unique(*last, self.now(), self.entropy());
        JobId::new(last.0, last.1)
    }

    /// A snapshot for reading.
    pub async fn read(&self) -> Result<Box<dyn Tx>, ServiceError> {
        Ok(self.store.read().await?)
    }

    /// A snapshot for frequent requests, or after a change notification: it may come from memory.
    pub async fn read_recent(&self) -> Result<Box<dyn Tx>, ServiceError> {
        Ok(self.store.read_recent().await?)
    }
}
