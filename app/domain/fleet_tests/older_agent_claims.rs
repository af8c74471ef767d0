//! Claims of older agents, in the rules and in the model.

use super::model::{FleetModel, ModelConnection, ModelJobState, ModelWorker};
use super::server::{PlanningTrigger, SimulatedServer};
use crate::domain::job::AttemptReport;
use crate::domain::unassigned_run::{OlderAgentClaim, accepted_offer, find_unassigned_run};
use crate::domain::worker;

impl SimulatedServer {
    /// Applies the heartbeat of an older agent: if it runs an offered job, it has accepted the offer.
    pub fn claim_heartbeat(&mut self, place: usize, claim: &OlderAgentClaim) -> Option<PlanningTrigger> {
        let (worker, held) = (self.workers[place].clone()?, self.held(place));
        if let Some(taken) = accepted_offer(&worker, &held, claim) {
            let after = taken.clone().reported(self.now, &worker.id, taken.attempt, AttemptReport::Starting).ok()?;
            self.jobs.iter_mut().filter(|job| *job == taken).for_each(|job| *job = after.clone());
        }
        Some(self.apply_older_agent_claim(place, claim))
    }

    /// Applies what an older agent says that it runs, in a heartbeat or a report, even if the report is rejected.
    pub fn apply_older_agent_claim(&mut self, place: usize, claim: &OlderAgentClaim) -> PlanningTrigger {
        let Some(before) = self.workers[place].clone() else { return PlanningTrigger::No };
        let unassigned_run = find_unassigned_run(&before, &self.held(place), claim);
        let freed = before.unassigned_run.is_some() && unassigned_run.is_none();
        self.workers[place] = Some(worker::Worker { unassigned_run, ..before });
        if freed { PlanningTrigger::Follows } else { PlanningTrigger::No }
    }
}

impl FleetModel {
    /// Applies the heartbeat of an older agent to the model: if it runs an offered job, it has accepted the offer.
    pub fn claim_heartbeat(&mut self, place: usize, runs: Option<usize>) {
        let older = self.workers[place].host.older;
        if let Some(job) = runs.and_then(|job| self.jobs.get_mut(job)).filter(|_| older)
            && job.holder() == Some(place)
            && matches!(job.state, ModelJobState::Offered { .. })
        {
            job.state = ModelJobState::Starting;
        }
        self.apply_older_agent_claim(place, runs);
    }

    pub fn apply_older_agent_claim(&mut self, place: usize, runs: Option<usize>) {
        let there = &self.workers[place];
        let known = there.host.older && !there.removed && there.connection != ModelConnection::NeverConnected;
        let has_taken_one = self.held_by(place).any(|job| !matches!(job.state, ModelJobState::Offered { .. }));
        let is_own = |job: &usize| self.jobs.get(*job).is_some_and(|job| job.holder() == Some(place));
        let unassigned_run = runs.filter(|job| known && !has_taken_one && !is_own(job));
        self.workers[place].unassigned_run = unassigned_run;
    }
}

impl ModelWorker {
    pub fn go_offline(&mut self) {
        (self.connection, self.unassigned_run) = (ModelConnection::Offline, None);
    }
}
