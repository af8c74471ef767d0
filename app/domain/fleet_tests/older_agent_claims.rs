//! Claims of older agents, in the rules and in the model.

use super::model::{FleetModel, ModelConnection, ModelJobState, ModelWorker};
use super::server::{PlanningTrigger, SimulatedServer};
use crate::domain::job::AttemptReport;
use crate::domain::unassigned_run::{OlderAgentClaim, accepted_offer, find_unassigned_run};
use crate::domain::worker;

impl SimulatedServer {
    /// Applies the heartbeat of an older agent: if it runs an offered job, it has accepted the offer.
    pub fn claim_heartbeat(&mut self, index: usize, claim: &OlderAgentClaim) -> Option<PlanningTrigger> {
        let (worker, held) = (self.workers[index].clone()?, self.held(index));
        if let Some(offered) = accepted_offer(&worker, &held, claim) {
            let after =
                offered.clone().reported(self.now, &worker.id, offered.attempt, AttemptReport::Starting).ok()?;
            self.jobs.iter_mut().filter(|job| *job == offered).for_each(|job| *job = after.clone());
        }
        Some(self.apply_older_agent_claim(index, claim))
    }

    /// Applies what an older agent says that it runs, in a heartbeat or a report, even if the report is rejected.
    pub fn apply_older_agent_claim(&mut self, index: usize, claim: &OlderAgentClaim) -> PlanningTrigger {
        let Some(before) = self.workers[index].clone() else { return PlanningTrigger::No };
        let unassigned_run = find_unassigned_run(&before, &self.held(index), claim);
        let freed = before.unassigned_run.is_some() && unassigned_run.is_none();
        self.workers[index] = Some(worker::Worker { unassigned_run, ..before });
        if freed { PlanningTrigger::Follows } else { PlanningTrigger::No }
    }
}

impl FleetModel {
    /// Applies the heartbeat of an older agent to the model: if it runs an offered job, it has accepted the offer.
    pub fn claim_heartbeat(&mut self, index: usize, runs: Option<usize>) {
        let older = self.workers[index].host.older;
        if let Some(job) = runs.and_then(|job| self.jobs.get_mut(job)).filter(|_| older)
            && job.holder() == Some(index)
            && matches!(job.state, ModelJobState::Offered { .. })
        {
            job.state = ModelJobState::Starting;
        }
        self.apply_older_agent_claim(index, runs);
    }

    pub fn apply_older_agent_claim(&mut self, index: usize, runs: Option<usize>) {
        let worker = &self.workers[index];
        let known = worker.host.older && !worker.removed && worker.connection != ModelConnection::NeverConnected;
        let has_accepted_one = self.held_by(index).any(|job| !matches!(job.state, ModelJobState::Offered { .. }));
        let is_own = |job: &usize| self.jobs.get(*job).is_some_and(|job| job.holder() == Some(index));
        let unassigned_run = runs.filter(|job| known && !has_accepted_one && !is_own(job));
        self.workers[index].unassigned_run = unassigned_run;
    }
}

impl ModelWorker {
    pub fn go_offline(&mut self) {
        (self.connection, self.unassigned_run) = (ModelConnection::Offline, None);
    }
}
