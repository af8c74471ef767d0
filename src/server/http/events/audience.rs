//! Who listens, and what of all that changed they may hear.

use std::collections::{BTreeSet, HashMap};

use app::domain::access::Permission as P;
use app::domain::ids::JobId;
use app::protocol::topic::Topic;

use crate::hub::Changes;
use crate::service::Core;
use crate::service::access::Person;
use crate::service::refusal::Refusal;

/// How many jobs a listener remembers as its own or not; looked up again beyond that.
const REMEMBERED: usize = 10_000;

/// See the module.
pub struct Audience {
    person: Person,
    /// What was asked for; none for everything.
    wanted: Option<BTreeSet<Topic>>,
    /// Whether jobs that changed are the listener's to see. The owner of a job never changes.
    sees: HashMap<JobId, bool>,
}

impl Audience {
    pub fn new(person: Person, wanted: Option<BTreeSet<Topic>>) -> Self {
        Self { person, wanted, sees: HashMap::new() }
    }

    /// What the listener is told of these changes. If that cannot be found out, they ask for everything again, and are
    /// answered with what they may see.
    pub async fn told(&mut self, core: &Core, changes: Changes) -> Changes {
        let mut topics = Vec::new();
        for topic in changes.topics {
            let topic = self.as_heard(topic);
            if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&topic)) {
                continue;
            }
            match self.hears(core, &topic).await {
                Ok(true) => topics.push(topic),
                Ok(false) => {}
                Err(_) => return Changes { version: changes.version, topics: Vec::new(), resync: true },
            }
        }
        Changes { topics, ..changes }
    }

    /// A topic as this listener knows it.
    fn as_heard(&self, topic: Topic) -> Topic {
        match topic {
            Topic::Access(user) if self.person.user.as_ref() == Some(&user) => Topic::Account,
            other => other,
        }
    }

    async fn hears(&mut self, core: &Core, topic: &Topic) -> Result<bool, Refusal> {
        let may = |permission| self.person.permissions.has(permission);
        Ok(match topic {
            // When the fleet changes, so does why a job waits.
            Topic::Workers => may(P::AdminWorkers) || may(P::JobViewOwn),
            Topic::Worker(_) | Topic::Gpus => may(P::AdminWorkers),
            Topic::Jobs => may(P::JobViewOwn),
            Topic::Job(job) | Topic::Log(job) => {
                may(P::JobViewAll) || may(P::JobViewOwn) && self.owns(core, job).await?
            }
            Topic::Configs => may(P::ConfigView),
            Topic::Secrets => may(P::JobSubmit),
            Topic::Account => may(P::AccountManage) || may(P::JobSubmit),
            Topic::Trail => may(P::AdminAudit),
            Topic::Access(_) => false,
        })
    }

    async fn owns(&mut self, core: &Core, job: &JobId) -> Result<bool, Refusal> {
        if let Some(owns) = self.sees.get(job) {
            return Ok(*owns);
        }
        let owns = core.recent().await?.job(job).await?.is_some_and(|job| job.submitted_by == self.person.name);
        if self.sees.len() >= REMEMBERED {
            self.sees.clear();
        }
        self.sees.insert(job.clone(), owns);
        Ok(owns)
    }
}
