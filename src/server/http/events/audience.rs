//! Filters change notifications by what the listener may see.

use std::collections::{BTreeSet, HashMap};

use app::domain::access::Permission as P;
use app::domain::ids::JobId;
use app::protocol::topic::Topic;

use crate::change_notifier::ChangeSet;
use crate::service::Services;
use crate::service::access::Principal;
use crate::service::error::ServiceError;

/// Visibility of this many jobs is cached per listener.
const MAX_CACHED_JOBS: usize = 10_000;

pub struct Audience {
    principal: Principal,
    /// The requested topics; `None` for all.
    topics: Option<BTreeSet<Topic>>,
    /// Whether the listener may see a job. The owner of a job never changes.
    visible_jobs: HashMap<JobId, bool>,
}

impl Audience {
    pub fn new(principal: Principal, topics: Option<BTreeSet<Topic>>) -> Self {
        Self { principal, topics, visible_jobs: HashMap::new() }
    }

    /// Returns the changes that the listener may see. If this cannot be determined, the listener is asked to reload
    /// everything.
    pub async fn visible_changes(&mut self, services: &Services, changes: ChangeSet) -> ChangeSet {
        let mut topics = Vec::new();
        for topic in changes.topics {
            let topic = self.as_visible(topic);
            if self.topics.as_ref().is_some_and(|topics| !topics.contains(&topic)) {
                continue;
            }
            match self.can_receive(services, &topic).await {
                Ok(true) => topics.push(topic),
                Ok(false) => {}
                Err(_) => return ChangeSet { version: changes.version, topics: Vec::new(), resync: true },
            }
        }
        ChangeSet { topics, ..changes }
    }

    /// Returns the topic as this listener knows it.
    fn as_visible(&self, topic: Topic) -> Topic {
        match topic {
            Topic::Access(user) if self.principal.user.as_ref() == Some(&user) => Topic::Account,
            other => other,
        }
    }

    async fn can_receive(&mut self, services: &Services, topic: &Topic) -> Result<bool, ServiceError> {
        let has_permission = |permission| self.principal.permissions.contains(permission);
        Ok(match topic {
            // A change of the fleet also changes why jobs are pending.
            Topic::Workers => has_permission(P::FleetView) || has_permission(P::JobViewOwn),
            Topic::Worker(_) | Topic::Gpus => has_permission(P::FleetView),
            Topic::Jobs => has_permission(P::JobViewOwn),
            Topic::Job(job) | Topic::Progress(job) | Topic::Log(job) => {
                has_permission(P::JobViewAll)
                    || has_permission(P::JobViewOwn) && self.can_see_job(services, job).await?
            }
            Topic::Configs => has_permission(P::ConfigView),
            Topic::Secrets => has_permission(P::JobSubmit),
            Topic::Account => has_permission(P::AccountManage) || has_permission(P::JobSubmit),
            Topic::AuditLog => has_permission(P::AdminAudit),
            Topic::Access(_) => false,
        })
    }

    async fn can_see_job(&mut self, services: &Services, job: &JobId) -> Result<bool, ServiceError> {
        if let Some(owns) = self.visible_jobs.get(job) {
            return Ok(*owns);
        }
        let owns = services
            .context
            .read_recent()
            .await?
            .job(job)
            .await?
            .is_some_and(|job| job.submitted_by == self.principal.name);
        if self.visible_jobs.len() >= MAX_CACHED_JOBS {
            self.visible_jobs.clear();
        }
        self.visible_jobs.insert(job.clone(), owns);
        Ok(owns)
    }
}
