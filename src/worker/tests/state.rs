//! The agent's decisions, as tables.

use app::domain::ids::Attempt;
use app::domain::sandbox::SandboxLevel;
use app::protocol::dispatch::{BundleRef, CheckpointPolicy};
use app::protocol::worker::StopAttempt;

use super::*;

fn key(job: &str, attempt: u32) -> Key {
    Key { job_id: serde_json::from_value(job.into()).unwrap_or_else(|_| panic!("id")), attempt: Attempt(attempt) }
}

fn offer(job: &str, attempt: u32) -> Box<JobSubmit> {
    let key = key(job, attempt);
    Box::new(JobSubmit {
        job_id: key.job_id,
        attempt: key.attempt,
        config_name: "c".to_owned(),
        config: serde_json::Map::new(),
        dataloader: None,
        upload_endpoint: "/u".to_owned(),
        upload_token: "jt".to_owned(),
        hf_token: None,
        provider: None,
        bundle: BundleRef { url: "/b".to_owned(), sha256: String::new() },
        gpus: Vec::new(),
        num_processes: None,
        exclusive: false,
        checkpoints: CheckpointPolicy::Last,
        max_runtime_seconds: None,
        traceparent: None,
        submitted_by: None,
        sandbox: SandboxLevel::None,
    })
}

fn policy(persistent: bool, on_stop: OnStop) -> Policy {
    Policy { persistent, on_stop, max_jobs: 1 }
}

fn agent(persistent: bool) -> Agent {
    Agent::new(policy(persistent, if persistent { OnStop::Leave } else { OnStop::Requeue }), [])
}

fn found(key: Key, over: bool) -> Found {
    Found { key, gpus: Vec::new(), over }
}

fn desired(desired: Desired) -> Input {
    Input::Desired(Box::new(desired))
}

fn leave(code: u8) -> Action {
    Action::Leave(Ending { code, sentence: None })
}

#[test]
fn an_offer_is_taken_once() {
    let mut agent = agent(true);
    assert_eq!(agent.step(Input::Offer(offer("j_1", 1))), [Action::Start(offer("j_1", 1))]);
    assert_eq!(agent.step(Input::Offer(offer("j_1", 1))), []);
    let again = Desired { offers: vec![*offer("j_1", 1)], ..Desired::default() };
    assert_eq!(agent.step(desired(again.clone())), []);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), []);
    assert_eq!(agent.step(desired(again)), [], "an ended attempt is not begun again");
    assert_eq!(agent.step(Input::Offer(offer("j_1", 2))), [Action::Start(offer("j_1", 2))]);
}

#[test]
fn a_host_that_costs_for_nothing_is_left_only_without_a_job() {
    let mut agent = agent(true);
    agent.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(agent.step(Input::Idle), []);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [], "it was too early");
    assert_eq!(agent.step(Input::Idle), [leave(0)]);
    assert_eq!(agent.step(Input::Offer(offer("j_2", 1))), [leave(0)], "nothing new is taken");
}

#[test]
fn gpus_that_come_late_wait_until_nothing_runs() {
    let mut agent = agent(true);
    agent.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(agent.step(Input::GpusCame), []);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), []);
    assert_eq!(agent.step(Input::GpusCame), [leave(exit::AGAIN)]);
}

#[test]
fn on_a_host_that_is_taken_away_nothing_is_left_running() {
    // Even a persistent worker, which otherwise leaves its trainers.
    let mut agent = agent(true);
    agent.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(agent.step(Input::HostEnds), [Action::Stop(key("j_1", 1), StopCause::Requeue)]);
    assert_eq!(agent.step(Input::Offer(offer("j_2", 1))), [Action::TurnAway]);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [leave(0)]);
}

#[test]
fn an_offer_that_comes_early_waits_for_the_end_before_it() {
    let mut agent = agent(true);
    agent.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(agent.step(Input::Offer(offer("j_2", 1))), []);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [Action::Start(offer("j_2", 1))]);
    assert_eq!(agent.step(Input::Offer(offer("j_3", 1))), []);
    agent.step(Input::Stop(key("j_3", 1), StopReason::Cancelled));
    assert_eq!(agent.step(Input::Ended(key("j_2", 1), true)), [], "a cancelled offer is forgotten");
}

#[test]
fn a_newer_attempt_ends_the_older_one_first() {
    let mut agent = agent(true);
    agent.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(agent.step(Input::Offer(offer("j_1", 2))), [Action::Stop(key("j_1", 1), StopCause::Superseded)]);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), false)), [Action::Start(offer("j_1", 2))]);
    assert_eq!(agent.step(Input::Offer(offer("j_1", 1))), [], "an older attempt is never begun");
}

#[test]
fn a_stop_is_given_once_and_only_a_stronger_one_again() {
    let mut agent = agent(false);
    agent.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(agent.step(Input::Signal(143)), [Action::Stop(key("j_1", 1), StopCause::Requeue)]);
    let cancel = Input::Stop(key("j_1", 1), StopReason::Cancelled);
    assert_eq!(agent.step(cancel.clone()), [Action::Stop(key("j_1", 1), StopCause::Cancelled)]);
    assert_eq!(agent.step(cancel), []);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [leave(143)]);
}

#[test]
fn what_is_not_here_is_said_once() {
    let mut agent = agent(true);
    let lost = Desired {
        run: vec![key("j_1", 1).running()],
        stop: vec![StopAttempt { job_id: key("j_2", 1).job_id, attempt: Attempt(1), reason: StopReason::Cancelled }],
        ..Desired::default()
    };
    let expected = [Action::ReportGone(key("j_2", 1), "cancelled"), Action::ReportGone(key("j_1", 1), "requeue")];
    assert_eq!(agent.step(desired(lost.clone())), expected);
    assert_eq!(agent.step(desired(lost)), []);
    let superseded = Input::Stop(key("j_3", 1), StopReason::Superseded);
    assert_eq!(agent.step(superseded), []);
}

#[test]
fn an_attempt_that_has_just_ended_is_not_lost() {
    let mut agent = Agent::new(policy(true, OnStop::Leave), [found(key("j_0", 1), true), found(key("j_1", 1), false)]);
    assert_eq!(agent.running(), [key("j_1", 1).running()]);
    agent.step(Input::Ended(key("j_1", 1), true));
    let late = Desired { run: vec![key("j_0", 1).running(), key("j_1", 1).running()], ..Desired::default() };
    assert_eq!(agent.step(desired(late)), []);
}

#[test]
fn an_ephemeral_worker_has_one_job() {
    let mut first = agent(false);
    first.step(Input::Offer(offer("j_1", 1)));
    first.step(Input::Offer(offer("j_2", 1)));
    assert_eq!(first.step(Input::Ended(key("j_1", 1), true)), [leave(0)]);
    let mut second = agent(false);
    second.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(second.step(Input::Ended(key("j_1", 1), false)), [], "an offer that was withdrawn is no job");
    assert_eq!(second.step(Input::Offer(offer("j_2", 1))), [Action::Start(offer("j_2", 1))]);
}

#[test]
fn drain_and_shutdown() {
    for end in [Input::Shutdown, Input::Drain(true), desired(Desired { drain: true, ..Desired::default() })] {
        let mut persistent = agent(true);
        assert_eq!(persistent.step(end.clone()), []);
        assert_eq!(persistent.step(Input::Offer(offer("j_1", 1))), []);
        persistent.step(Input::Drain(false));
        assert_eq!(persistent.step(Input::Offer(offer("j_1", 1))), [Action::Start(offer("j_1", 1))]);
        assert_eq!(agent(false).step(end.clone()), [leave(0)]);
        let mut busy = agent(false);
        busy.step(Input::Offer(offer("j_1", 1)));
        assert_eq!(busy.step(end), []);
        assert_eq!(busy.step(Input::Ended(key("j_1", 1), true)), [leave(0)]);
    }
}

#[test]
fn an_agent_leaves_when_the_orchestrator_says_that_its_worker_was_for_one_job() {
    let spent = || desired(Desired { spent: true, ..Desired::default() });
    for persistent in [true, false] {
        assert_eq!(agent(persistent).step(spent()), [leave(0)]);
        let mut busy = agent(persistent);
        busy.step(Input::Offer(offer("j_1", 1)));
        assert_eq!(busy.step(spent()), []);
        assert_eq!(busy.step(Input::Ended(key("j_1", 1), true)), [leave(0)]);
    }
}

#[test]
fn in_a_year_no_more_is_remembered_than_in_a_day() {
    let mut agent = agent(true);
    let job = |n: usize| format!("j_{n}");
    for n in 0..3 * REMEMBERED {
        assert_eq!(agent.step(Input::Offer(offer(&job(n), 1))), [Action::Start(offer(&job(n), 1))]);
        assert_eq!(agent.step(Input::Ended(key(&job(n), 1), true)), []);
    }
    assert_eq!((agent.attempts.len(), agent.ended.len()), (REMEMBERED, REMEMBERED));
    let late = Input::Offer(offer(&job(3 * REMEMBERED - 1), 1));
    assert_eq!(agent.step(late), [], "it has just ended");
}

#[test]
fn signals_by_policy() {
    for (on_stop, busy_actions) in [
        (OnStop::Leave, vec![leave(143)]),
        (OnStop::Finish, vec![]),
        (OnStop::Requeue, vec![Action::Stop(key("j_1", 1), StopCause::Requeue)]),
    ] {
        assert_eq!(Agent::new(policy(true, on_stop), []).step(Input::Signal(143)), [leave(143)]);
        let mut busy = Agent::new(policy(true, on_stop), [found(key("j_1", 1), false)]);
        assert_eq!(busy.step(Input::Signal(143)), busy_actions);
        let ours = Input::Offer(offer("j_1", 1));
        assert_eq!(busy.step(ours), []);
        // Once for each.
        for turned_away in [vec![Action::TurnAway], vec![]] {
            assert_eq!(busy.step(Input::Offer(offer("j_2", 1))), turned_away);
        }
        assert_eq!(busy.step(Input::Ended(key("j_1", 1), true)), [leave(143)]);
    }
}

#[test]
fn who_leaves_with_places_to_give_says_so() {
    let several = |on_stop| Policy { max_jobs: 2, ..policy(true, on_stop) };
    let stop = || Action::Stop(key("j_1", 1), StopCause::Requeue);
    let host_ends = || Input::HostEnds;
    for (on_stop, why, code, actions) in [
        (OnStop::Leave, Input::Signal(143), 143, vec![leave(143)]),
        (OnStop::Finish, Input::Signal(143), 143, vec![Action::TurnAway]),
        (OnStop::Requeue, Input::Signal(143), 143, vec![stop(), Action::TurnAway]),
        (OnStop::Leave, host_ends(), 0, vec![stop(), Action::TurnAway]),
    ] {
        let mut busy = Agent::new(several(on_stop), [found(key("j_1", 1), false)]);
        assert_eq!(busy.step(why), actions);
        assert_eq!(busy.step(Input::Ended(key("j_1", 1), true)), [leave(code)]);
    }
    // What waited for a place waits here no longer.
    let mut full = Agent::new(policy(true, OnStop::Finish), [found(key("j_1", 1), false)]);
    assert_eq!(full.step(Input::Offer(offer("j_2", 1))), []);
    assert_eq!(full.step(Input::Signal(143)), [Action::TurnAway]);
    assert_eq!(full.step(desired(Desired { offers: vec![*offer("j_2", 1)], ..Desired::default() })), []);
}

#[test]
fn a_refused_token_waits_for_the_running_job() {
    let refused = || Input::Refused("no".to_owned());
    let ending = || Action::Leave(Ending { code: exit::REFUSED, sentence: Some("no".to_owned()) });
    assert_eq!(agent(true).step(refused()), [ending()]);
    let mut busy = agent(true);
    busy.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(busy.step(refused()), []);
    assert_eq!(busy.step(Input::Ended(key("j_1", 1), true)), [ending()]);
}

#[test]
fn only_an_idle_ephemeral_worker_gives_up() {
    let lost = || Input::Unreachable("away".to_owned());
    assert_eq!(agent(true).step(lost()), []);
    let mut busy = agent(false);
    busy.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(busy.step(lost()), []);
    assert!(matches!(&agent(false).step(lost())[..], [Action::Leave(Ending { code: 69, .. })]));
}

fn several(max_jobs: u32, persistent: bool) -> Agent {
    Agent::new(Policy { max_jobs, ..policy(persistent, OnStop::Requeue) }, [])
}

fn offer_with(job: &str, attempt: u32, gpus: &[&str]) -> Box<JobSubmit> {
    Box::new(JobSubmit { gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(), ..*offer(job, attempt) })
}

#[test]
fn so_many_jobs_run_at_once_and_the_rest_wait_in_order() {
    let mut agent = several(2, true);
    for job in ["j_1", "j_2"] {
        assert_eq!(agent.step(Input::Offer(offer(job, 1))), [Action::Start(offer(job, 1))]);
    }
    for job in ["j_3", "j_4", "j_3"] {
        assert_eq!(agent.step(Input::Offer(offer(job, 1))), [], "{job} waits");
    }
    assert_eq!(agent.running(), [key("j_1", 1).running(), key("j_2", 1).running()]);
    assert_eq!(agent.step(Input::Ended(key("j_2", 1), true)), [Action::Start(offer("j_3", 1))]);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [Action::Start(offer("j_4", 1))]);
    assert_eq!(agent.step(Input::Ended(key("j_3", 1), true)), [], "nothing is begun twice");
}

#[test]
fn a_waiting_offer_that_is_cancelled_or_replaced_is_not_begun() {
    let mut agent = several(1, true);
    agent.step(Input::Offer(offer("j_1", 1)));
    for waiting in [offer("j_2", 1), offer("j_3", 1), offer("j_4", 1), offer("j_3", 2)] {
        agent.step(Input::Offer(waiting));
    }
    agent.step(Input::Stop(key("j_2", 1), StopReason::Superseded));
    agent.step(Input::Stop(key("j_3", 1), StopReason::Superseded));
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [Action::Start(offer("j_3", 2))], "its place is kept");
    assert_eq!(agent.step(Input::Ended(key("j_3", 2), true)), [Action::Start(offer("j_4", 1))]);
}

#[test]
fn a_stop_touches_its_own_attempt_and_a_signal_all() {
    let mut agent = several(3, true);
    for job in ["j_1", "j_2", "j_3"] {
        agent.step(Input::Offer(offer(job, 1)));
    }
    let cancel = Input::Stop(key("j_2", 1), StopReason::Cancelled);
    assert_eq!(agent.step(cancel), [Action::Stop(key("j_2", 1), StopCause::Cancelled)]);
    let stop = |job| Action::Stop(key(job, 1), StopCause::Requeue);
    assert_eq!(agent.step(Input::Signal(143)), [stop("j_1"), stop("j_3"), Action::TurnAway]);
    assert_eq!(agent.step(Input::Ended(key("j_2", 1), true)), []);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [], "the last one is still here");
    assert_eq!(agent.step(Input::Ended(key("j_3", 1), true)), [leave(143)]);
}

#[test]
fn a_newer_attempt_waits_for_the_older_one_though_there_is_room() {
    let mut agent = several(2, true);
    agent.step(Input::Offer(offer("j_1", 1)));
    assert_eq!(agent.step(Input::Offer(offer("j_1", 2))), [Action::Stop(key("j_1", 1), StopCause::Superseded)]);
    assert_eq!(agent.step(Input::Offer(offer("j_2", 1))), [Action::Start(offer("j_2", 1))]);
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), false)), [Action::Start(offer("j_1", 2))]);
}

#[test]
fn no_two_attempts_share_a_gpu() {
    let held = Found { key: key("j_0", 1), gpus: vec!["GPU-0".to_owned()], over: false };
    let mut agent = Agent::new(Policy { max_jobs: 4, ..policy(true, OnStop::Leave) }, [held]);
    assert_eq!(agent.step(Input::Offer(offer_with("j_1", 1, &["GPU-1", "GPU-0"]))), [], "an adopted attempt has one");
    let beside = offer_with("j_2", 1, &["GPU-2"]);
    assert_eq!(agent.step(Input::Offer(beside.clone())), [Action::Start(beside)]);
    let freed = [Action::Start(offer_with("j_1", 1, &["GPU-1", "GPU-0"]))];
    assert_eq!(agent.step(Input::Ended(key("j_0", 1), true)), freed);
}

#[test]
fn an_ephemeral_worker_ends_with_the_last_of_its_attempts() {
    let mut agent = several(2, false);
    agent.step(Input::Offer(offer("j_1", 1)));
    agent.step(Input::Offer(offer("j_2", 1)));
    agent.step(Input::Offer(offer("j_3", 1)));
    assert_eq!(agent.step(Input::Ended(key("j_1", 1), true)), [], "it is spent, and takes nothing new");
    assert_eq!(agent.step(Input::Offer(offer("j_4", 1))), []);
    assert_eq!(agent.step(Input::Ended(key("j_2", 1), true)), [leave(0)]);
}
