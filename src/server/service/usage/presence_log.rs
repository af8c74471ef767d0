//! When workers were online, from the audit log. It is kept in memory and continued, because the log of a large fleet is
//! long.

use std::collections::{BTreeMap, HashMap};

use app::domain::audit::AuditAction;
use app::domain::audit::verify::{ChainHead, EntryRef};
use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::usage::presence::{CapacityChange, FleetCapacity, PresenceChange, WorkerIndex, fleet_capacity};
use app::domain::usage::{AttemptUsage, TimeWindow};
use app::domain::worker::ConnectionState;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::service::error::ServiceError;
use crate::store::Tx;
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;
use crate::store::usage::PresenceEvent;

/// The audit actions that show whether workers are online.
const PRESENCE_ACTIONS: [AuditAction; 10] = [
    AuditAction::WorkerRegistered,
    AuditAction::WorkerOnline,
    AuditAction::WorkerConnecting,
    AuditAction::WorkerOffline,
    AuditAction::WorkerRemoved,
    AuditAction::WorkerDeleted,
    AuditAction::WorkerDrained,
    AuditAction::WorkerResumed,
    AuditAction::WorkerRetired,
    AuditAction::WorkerHostHealth,
];

/// The number of changes that are kept, about 100 MB. If there are more, the next request reads all of them again.
const MAX_KEPT_CHANGES: usize = 4_000_000;

pub(super) type IndexedChange = (Timestamp, WorkerIndex, CapacityChange);

#[derive(Default)]
pub(super) struct PresenceLog {
    /// The newest entry of each chain that was read.
    read: BTreeMap<String, EntryRef>,
    indexes: HashMap<WorkerId, WorkerIndex>,
    /// By time.
    changes: Vec<IndexedChange>,
}

impl PresenceLog {
    /// Returns the capacity of the fleet that ran these attempts, with further changes that have no entries.
    pub(super) fn fleet_capacity(
        &mut self,
        mut further: Vec<IndexedChange>,
        runs: &[AttemptUsage],
        window: TimeWindow,
    ) -> FleetCapacity {
        for run in runs {
            let worker = self.index(&run.worker);
            further.push((run.offered_at, worker, CapacityChange::JobAdded));
            further.extend(run.ended_at.map(|at| (at, worker, CapacityChange::JobRemoved)));
        }
        let presence = self.changes.iter().take_while(|(at, ..)| *at < window.until).copied();
        let mut changes: Vec<IndexedChange> = presence.chain(further).collect();
        changes.sort_by_key(|(at, ..)| *at);
        if self.changes.len() > MAX_KEPT_CHANGES {
            *self = Self::default();
        }
        fleet_capacity(changes, window)
    }

    /// Reads the entries since the last time.
    pub(super) async fn read_new(
        &mut self,
        tx: &mut dyn Tx,
        heads: &BTreeMap<String, ChainHead>,
    ) -> Result<(), ServiceError> {
        // A restored database may lack entries that were read.
        let is_known = |(chain, read): (&String, &EntryRef)| {
            heads.get(chain).is_some_and(|head| head.newest.seq > read.seq || head.newest == *read)
        };
        if !self.read.iter().all(is_known) {
            *self = Self::default();
        }
        let actions = PRESENCE_ACTIONS.map(AuditAction::as_str);
        for (chain, head) in heads {
            let after = self.read.get(chain).map_or(0, |read| read.seq);
            for event in tx.presence_events(&actions, chain, after, head.newest.seq).await? {
                if let Some((worker, change)) = presence_change(&event) {
                    let worker = self.index(&worker);
                    self.changes.push((event.at, worker, CapacityChange::Presence(change)));
                }
            }
            self.read.insert(chain.clone(), head.newest.clone());
        }
        self.changes.sort_by_key(|(at, ..)| *at);
        Ok(())
    }

    /// The current presence of workers that came online before the oldest entry.
    pub(super) async fn workers_without_entries(
        &mut self,
        tx: &mut dyn Tx,
    ) -> Result<Vec<IndexedChange>, ServiceError> {
        let is_unknown = |row: &&FleetWorker| !self.indexes.contains_key(&row.worker().id);
        let find_current = |fleet_state: &FleetState| -> Vec<(WorkerId, Timestamp, PresenceChange)> {
            fleet_state.workers().filter(is_unknown).flat_map(current_presence).collect()
        };
        let current = tx.with_state(find_current).await?;
        let change = |(id, since, change)| (since, self.index(&id), CapacityChange::Presence(change));
        Ok(current.into_iter().map(change).collect())
    }

    fn index(&mut self, worker: &WorkerId) -> WorkerIndex {
        if let Some(index) = self.indexes.get(worker) {
            return *index;
        }
        let index = WorkerIndex::try_from(self.indexes.len()).unwrap_or(WorkerIndex::MAX);
        self.indexes.insert(worker.clone(), index);
        index
    }
}

fn presence_change(event: &PresenceEvent) -> Option<(WorkerId, PresenceChange)> {
    /// Of a registration, and of a change of the host's health.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Detail {
        gpus: Vec<IgnoredAny>,
        unhealthy_reason: Option<IgnoredAny>,
    }
    let detail = || serde_json::from_str::<Detail>(&event.detail).unwrap_or_default();
    let action = PRESENCE_ACTIONS.into_iter().find(|action| action.as_str() == event.action)?;
    let change = match action {
        AuditAction::WorkerRegistered => {
            let Detail { gpus, unhealthy_reason } = detail();
            let gpus = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
            PresenceChange::Registered { gpus, unhealthy: unhealthy_reason.is_some() }
        }
        AuditAction::WorkerOnline => PresenceChange::Online,
        AuditAction::WorkerConnecting => PresenceChange::Connecting,
        AuditAction::WorkerDrained => PresenceChange::Drained,
        AuditAction::WorkerResumed => PresenceChange::Resumed,
        AuditAction::WorkerRetired => PresenceChange::Retired,
        AuditAction::WorkerHostHealth => PresenceChange::HostHealth { unhealthy: detail().unhealthy_reason.is_some() },
        _ => PresenceChange::Offline,
    };
    Some((WorkerId::parse(&event.worker).ok()?, change))
}

fn current_presence(row: &FleetWorker) -> Vec<(WorkerId, Timestamp, PresenceChange)> {
    let worker = row.worker();
    let (since, capability, has_stream) = match &worker.connection {
        ConnectionState::Online { since, capability, .. } => (*since, capability, true),
        ConnectionState::Connecting { since, capability, .. } => (*since, capability, false),
        ConnectionState::NeverConnected | ConnectionState::Offline { .. } => return Vec::new(),
    };
    let gpus = u32::try_from(capability.gpus.len()).unwrap_or(u32::MAX);
    let registered = PresenceChange::Registered { gpus, unhealthy: capability.unhealthy_reason.is_some() };
    let further =
        [has_stream.then_some(PresenceChange::Online), worker.drain.as_ref().map(|_| PresenceChange::Drained)];
    let all = [Some(registered)].into_iter().chain(further).flatten();
    all.map(|change| (worker.id.clone(), since, change)).collect()
}
