//! The cached rows that a commit has changed, by their keys: other servers read these rows again.

use std::collections::BTreeSet;

use app::domain::ids::{JobId, SessionId, TokenId, UserId, WorkerId};
use serde::{Deserialize, Serialize};

use super::access::AccessChange;
use super::shares::{ShareChange, usage_id};
use super::state::StateChange;
use crate::store::access::LastUsed;

/// Stored as JSON. A server of another version may write kinds of rows that this one does not cache, and ignores.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedRows {
    pub workers: BTreeSet<WorkerId>,
    /// Workers of which only the last contact has changed.
    pub contacts: BTreeSet<WorkerId>,
    pub jobs: BTreeSet<JobId>,
    /// Jobs that have ended: they are not cached, so their rows need not be read.
    pub ended_jobs: BTreeSet<JobId>,
    pub users: BTreeSet<UserId>,
    pub tokens: BTreeSet<TokenId>,
    pub sessions: BTreeSet<SessionId>,
    /// Configurations, by name.
    pub configs: BTreeSet<String>,
    /// Configurations of which jobs were created, and so numbered, by name.
    pub numbered_configs: BTreeSet<String>,
    /// Teams, by name.
    pub teams: BTreeSet<String>,
    /// What members of teams have used.
    pub share_usage: BTreeSet<String>,
    /// Whether the rules of shares have changed.
    pub share_rules: bool,
}

impl ChangedRows {
    pub fn record(&mut self, change: &StateChange) {
        match change {
            StateChange::Worker(worker) => drop(self.workers.insert(worker.id.clone())),
            StateChange::Credential(id, _) | StateChange::WorkerRemoved(id) => drop(self.workers.insert(id.clone())),
            StateChange::Contact(id, _) => drop(self.contacts.insert(id.clone())),
            StateChange::Job(job) if job.has_ended() => drop(self.ended_jobs.insert(job.id.clone())),
            StateChange::Job(job) => drop(self.jobs.insert(job.id.clone())),
            StateChange::JobRemoved(id) => drop(self.ended_jobs.insert(id.clone())),
            StateChange::Access(change) => self.record_access(change),
            StateChange::Share(change) => self.record_share(change),
        }
    }

    fn record_share(&mut self, change: &ShareChange) {
        match change {
            ShareChange::Team(team) => drop(self.teams.insert(team.name.clone())),
            ShareChange::TeamRemoved(name) => drop(self.teams.insert(name.clone())),
            ShareChange::Usage(key, _) => drop(self.share_usage.insert(usage_id(key))),
            ShareChange::Rules(_) => self.share_rules = true,
        }
    }

    fn record_access(&mut self, change: &AccessChange) {
        match change {
            AccessChange::User(user) => drop(self.users.insert(user.id.clone())),
            AccessChange::Token(_, token) => drop(self.tokens.insert(token.id.clone())),
            AccessChange::TokenRemoved(id) | AccessChange::Used(LastUsed::Token(id, _)) => {
                self.tokens.insert(id.clone());
            }
            AccessChange::Session(_, session) => drop(self.sessions.insert(session.id.clone())),
            AccessChange::Reauthenticated(id, _) | AccessChange::Used(LastUsed::Session(id, _)) => {
                self.sessions.insert(id.clone());
            }
            AccessChange::SessionsRemoved(ids) => self.sessions.extend(ids.iter().cloned()),
        }
    }

    /// Adds the rows of another commit.
    pub fn merge(&mut self, other: Self) {
        let Self {
            workers,
            contacts,
            jobs,
            ended_jobs,
            users,
            tokens,
            sessions,
            configs,
            numbered_configs,
            teams,
            share_usage,
            share_rules,
        } = other;
        self.workers.extend(workers);
        self.contacts.extend(contacts);
        self.jobs.extend(jobs);
        self.ended_jobs.extend(ended_jobs);
        self.users.extend(users);
        self.tokens.extend(tokens);
        self.sessions.extend(sessions);
        self.configs.extend(configs);
        self.numbered_configs.extend(numbered_configs);
        self.teams.extend(teams);
        self.share_usage.extend(share_usage);
        self.share_rules |= share_rules;
    }
}
