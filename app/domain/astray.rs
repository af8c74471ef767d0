//! Older agents that run what they do not hold.
//!
//! They read no answer but that of their registration, so no refusal stops them. What such an agent says that it runs,
//! and does not hold, is kept with its worker until it says otherwise: then its stream tells it to stop, and it is
//! offered nothing that it would not hear.

use super::ids::JobId;
use super::job::{Job, Report, State};
use super::time::{Millis, Timestamp};
use super::worker::Worker;

/// What an agent says of itself, by a heartbeat or by a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It runs nothing.
    Idle,
    /// It runs this job; which attempt of it, older agents do not know.
    Runs(JobId),
}

impl Word {
    /// What a report on a job says of the agent.
    pub fn of(job: &JobId, report: &Report) -> Self {
        match report {
            Report::Starting | Report::Running => Self::Runs(job.clone()),
            Report::Completed
            | Report::Failed { .. }
            | Report::Cancelled
            | Report::Requeue { .. }
            | Report::Evicted => Self::Idle,
        }
    }
}

/// What an agent that says this runs without holding it, given the jobs that hold a lease of its worker.
///
/// Agents of ours read answers and name attempts. Who has taken a job runs that one: an older agent runs one at a time,
/// and what it would be told to stop is whatever it runs.
pub fn astray(worker: &Worker, held: &[Job], word: &Word) -> Option<JobId> {
    let Word::Runs(job) = word else { return None };
    let runs_its_own = held.iter().any(|own| own.id == *job || !matches!(own.state, State::Offered { .. }));
    (worker.is_older() && !runs_its_own).then(|| job.clone())
}

/// What an older agent's report means: it says `failed` of a trainer that somebody killed, and gives the signal as a negative
/// exit code. That is a loss of the attempt, as when the host goes, and no fault of the training.
pub fn older_report(report: Report) -> Report {
    match report {
        Report::Failed { exit_code: None, error } if ended_by(&error).is_some_and(|signal| KILLS.contains(&signal)) => {
            Report::Requeue { error }
        }
        report => report,
    }
}

/// Whether an older agent has had a job for so long without saying that the training began: it says so at once when it has
/// started the trainer, so it has come to grief before.
pub fn never_began(now: Timestamp, worker: &Worker, job: &Job) -> bool {
    let State::Starting { since, .. } = job.state else { return false };
    worker.is_older() && now - since >= BEGINS
}

/// How long an older agent may take to start a trainer.
const BEGINS: Millis = Millis::seconds(600);

/// SIGHUP, SIGINT, SIGKILL, SIGTERM: they come from elsewhere, not from the trainer's own faults.
const KILLS: [u8; 4] = [1, 2, 9, 15];

/// The signal in an older agent's words: `Training exited with code -15`.
fn ended_by(error: &str) -> Option<u8> {
    error.rsplit_once(" code -")?.1.trim().parse().ok()
}

/// Whether what an agent says changes what is known of it.
pub fn is_news(worker: &Worker, held: &[Job], word: &Word) -> bool {
    astray(worker, held, word) != worker.astray
}

/// What was offered to an older agent's worker, if the agent says by a heartbeat that it runs that: it has taken it. Its
/// report of that may be lost, and it makes each once.
pub fn offer_taken<'j>(worker: &Worker, held: &'j [Job], word: &Word) -> Option<&'j Job> {
    let Word::Runs(job) = word else { return None };
    held.iter().find(|own| worker.is_older() && own.id == *job && matches!(own.state, State::Offered { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::fixtures::{NOW, job, job_id, unseen, worker, worker_id};
    use crate::domain::job::Demand;
    use crate::domain::worker::Kind;

    fn older() -> Worker {
        let registered = unseen(1).registered(NOW, Capability::default(), Kind::Persistent);
        registered.listening(NOW, "s").expect("registered")
    }

    fn offered(n: u16) -> Job {
        job(n, Demand::default()).offered(NOW, worker_id(1), vec![], NOW).expect("it waits")
    }

    fn after(n: u16, report: Report) -> Job {
        offered(n).reported(NOW, &worker_id(1), offered(n).attempt, report).expect("current")
    }

    fn runs(n: u16) -> Word {
        Word::Runs(job_id(n))
    }

    #[test]
    fn who_is_astray() {
        let cancelling = after(8, Report::Running).cancelled(NOW).expect("it runs");
        let rows = [
            (older(), vec![], runs(9), Some(job_id(9))),
            (older(), vec![], Word::Idle, None),
            (worker(1, &[], 1), vec![], runs(9), None),
            (unseen(1), vec![], runs(9), None),
            (older(), vec![offered(9)], runs(9), None),
            (older(), vec![after(9, Report::Running)], runs(9), None),
            (older(), vec![offered(8)], runs(9), Some(job_id(9))),
            (older(), vec![after(8, Report::Starting)], runs(9), None),
            (older(), vec![after(8, Report::Running)], runs(9), None),
            (older(), vec![cancelling], runs(9), None),
        ];
        for (n, (worker, held, word, expected)) in rows.into_iter().enumerate() {
            assert_eq!(astray(&worker, &held, &word), expected, "row {n}");
        }
    }

    #[test]
    fn what_was_known_is_no_news() {
        let astray = Worker { astray: Some(job_id(9)), ..older() };
        let news = |word| is_news(&astray, &[], &word);
        assert_eq!((news(runs(9)), news(runs(8)), news(Word::Idle)), (false, true, true));
    }

    #[test]
    fn only_an_older_agents_own_offer_is_taken_by_a_heartbeat() {
        let rows = [
            (older(), offered(9), runs(9), true),
            (older(), offered(9), runs(8), false),
            (older(), offered(9), Word::Idle, false),
            (worker(1, &[], 1), offered(9), runs(9), false),
            (older(), after(9, Report::Running), runs(9), false),
        ];
        for (n, (worker, job, word, expected)) in rows.into_iter().enumerate() {
            assert_eq!(offer_taken(&worker, &[job], &word).is_some(), expected, "row {n}");
        }
    }

    #[test]
    fn a_trainer_that_was_killed_has_not_failed() {
        let failed = |exit_code, error: &str| Report::Failed { exit_code, error: error.to_owned() };
        for signal in [1, 2, 9, 15] {
            let error = format!("Training exited with code -{signal}");
            assert_eq!(older_report(failed(None, &error)), Report::Requeue { error });
        }
        let own = [
            failed(None, "Training exited with code 1"),
            failed(None, "Training exited with code -11"),
            failed(None, "Training exited with code -15 and more"),
            failed(Some(-15), "Training exited with code -15"),
            failed(None, ""),
            Report::Completed,
        ];
        for report in own {
            assert_eq!(older_report(report.clone()), report);
        }
    }

    #[test]
    fn what_reports_say_of_an_agent() {
        let failed = Report::Failed { exit_code: None, error: String::new() };
        let given_back = Report::Requeue { error: String::new() };
        for report in [Report::Starting, Report::Running] {
            assert_eq!(Word::of(&job_id(9), &report), runs(9));
        }
        for report in [Report::Completed, failed, Report::Cancelled, given_back, Report::Evicted] {
            assert_eq!(Word::of(&job_id(9), &report), Word::Idle);
        }
    }

    #[test]
    fn who_registers_or_goes_is_astray_no_more() {
        let astray = Worker { astray: Some(job_id(9)), ..older() };
        assert_eq!(astray.clone().listening(NOW, "t").expect("registered").astray, Some(job_id(9)));
        assert_eq!(astray.clone().stopped_listening(NOW, "s").astray, Some(job_id(9)));
        assert_eq!(astray.clone().registered(NOW, Capability::default(), Kind::Persistent).astray, None);
        assert_eq!(astray.gone(NOW, crate::domain::worker::OfflineCause::Silent).astray, None);
    }
}
