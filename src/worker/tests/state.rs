//! The agent's decisions, as tables.

use app::domain::ids::AttemptNumber;
use app::domain::sandbox::SandboxLevel;
use app::protocol::agents::StopAttempt;
use app::protocol::agents::dispatch::{BundleRef, CheckpointPolicy};

use super::*;

fn key(job: &str, attempt: u32) -> AttemptKey {
    AttemptKey {
        job_id: serde_json::from_value(job.into()).unwrap_or_else(|_| panic!("id")),
        attempt: AttemptNumber(attempt),
    }
}

fn offer(job: &str, attempt: u32) -> Box<JobOffer> {
    let key = key(job, attempt);
    Box::new(JobOffer {
        job_id: key.job_id,
        attempt: key.attempt,
        config_name: "c".to_owned(),
        config: serde_json::Map::new(),
        dataloader: None,
        upload_endpoint: "/u".to_owned(),
        upload_token: "jt".to_owned(),
        hf_token: None,
        provider: None,
        bundle: BundleRef { url: "/b".to_owned(), sha256: String::new(), body: None },
        has_secrets: true,
        may_have_checkpoint: true,
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

fn policy(persistent: bool, on_stop: OnStop) -> AgentPolicy {
    AgentPolicy { persistent, on_stop, max_jobs: 1 }
}

fn agent(persistent: bool) -> AgentState {
    AgentState::new(policy(persistent, if persistent { OnStop::Leave } else { OnStop::Requeue }), [])
}

fn adopted(key: AttemptKey, is_finished: bool) -> AdoptedAttempt {
    AdoptedAttempt { key, gpus: Vec::new(), is_finished }
}

fn desired(desired: DesiredState) -> AgentInput {
    AgentInput::Desired(Box::new(desired))
}

fn exit_with(code: u8) -> AgentAction {
    AgentAction::Exit(ProcessExit { code, sentence: None })
}

#[test]
fn offer_is_accepted_once() {
    let mut agent = agent(true);
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_1", 1))), [AgentAction::Start(offer("j_1", 1))]);
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_1", 1))), []);
    let repeated = DesiredState { offers: vec![*offer("j_1", 1)], ..DesiredState::default() };
    assert_eq!(agent.handle(desired(repeated.clone())), []);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), []);
    assert_eq!(agent.handle(desired(repeated)), [], "an ended attempt is not started again");
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_1", 2))), [AgentAction::Start(offer("j_1", 2))]);
}

#[test]
fn idle_limit_exits_only_without_a_job() {
    let mut agent = agent(true);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(agent.handle(AgentInput::Idle), []);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), [], "the idle limit was reached while a job ran");
    assert_eq!(agent.handle(AgentInput::Idle), [exit_with(0)]);
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_2", 1))), [exit_with(0)], "no new offer is accepted");
}

#[test]
fn added_gpus_wait_until_nothing_runs() {
    let mut agent = agent(true);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(agent.handle(AgentInput::GpusAdded), []);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), []);
    assert_eq!(agent.handle(AgentInput::GpusAdded), [exit_with(exit::RESTART)]);
}

#[test]
fn host_termination_stops_all_jobs() {
    // Also a persistent worker, which otherwise leaves its trainers running.
    let mut agent = agent(true);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(agent.handle(AgentInput::HostTerminating), [AgentAction::Stop(key("j_1", 1), StopCause::Requeue)]);
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_2", 1))), [AgentAction::DeclineOffers]);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), [exit_with(0)]);
}

#[test]
fn early_offer_waits_for_the_previous_job() {
    let mut agent = agent(true);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_2", 1))), []);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), [AgentAction::Start(offer("j_2", 1))]);
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_3", 1))), []);
    agent.handle(AgentInput::Stop(key("j_3", 1), StopReason::Cancelled));
    assert_eq!(agent.handle(AgentInput::Ended(key("j_2", 1), true)), [], "a cancelled offer is forgotten");
}

#[test]
fn newer_attempt_stops_the_older_one_first() {
    let mut agent = agent(true);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(
        agent.handle(AgentInput::Offer(offer("j_1", 2))),
        [AgentAction::Stop(key("j_1", 1), StopCause::Superseded)]
    );
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), false)), [AgentAction::Start(offer("j_1", 2))]);
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_1", 1))), [], "an older attempt is never started");
}

#[test]
fn stop_is_repeated_only_for_a_stronger_cause() {
    let mut agent = agent(false);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(agent.handle(AgentInput::Signal(143)), [AgentAction::Stop(key("j_1", 1), StopCause::Requeue)]);
    let cancel = AgentInput::Stop(key("j_1", 1), StopReason::Cancelled);
    assert_eq!(agent.handle(cancel.clone()), [AgentAction::Stop(key("j_1", 1), StopCause::Cancelled)]);
    assert_eq!(agent.handle(cancel), []);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), [exit_with(143)]);
}

#[test]
fn missing_attempt_is_reported_once() {
    let mut agent = agent(true);
    let lost = DesiredState {
        run: vec![key("j_1", 1).to_running_attempt()],
        stop: vec![StopAttempt {
            job_id: key("j_2", 1).job_id,
            attempt: AttemptNumber(1),
            reason: StopReason::Cancelled,
        }],
        ..DesiredState::default()
    };
    let expected =
        [AgentAction::ReportGone(key("j_2", 1), "cancelled"), AgentAction::ReportGone(key("j_1", 1), "requeue")];
    assert_eq!(agent.handle(desired(lost.clone())), expected);
    assert_eq!(agent.handle(desired(lost)), []);
    let superseded = AgentInput::Stop(key("j_3", 1), StopReason::Superseded);
    assert_eq!(agent.handle(superseded), []);
}

#[test]
fn just_ended_attempt_is_not_lost() {
    let mut agent =
        AgentState::new(policy(true, OnStop::Leave), [adopted(key("j_0", 1), true), adopted(key("j_1", 1), false)]);
    assert_eq!(agent.running(), [key("j_1", 1).to_running_attempt()]);
    agent.handle(AgentInput::Ended(key("j_1", 1), true));
    let late = DesiredState {
        run: vec![key("j_0", 1).to_running_attempt(), key("j_1", 1).to_running_attempt()],
        ..DesiredState::default()
    };
    assert_eq!(agent.handle(desired(late)), []);
}

#[test]
fn ephemeral_worker_has_one_job() {
    let mut first = agent(false);
    first.handle(AgentInput::Offer(offer("j_1", 1)));
    first.handle(AgentInput::Offer(offer("j_2", 1)));
    assert_eq!(first.handle(AgentInput::Ended(key("j_1", 1), true)), [exit_with(0)]);
    let mut second = agent(false);
    second.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(second.handle(AgentInput::Ended(key("j_1", 1), false)), [], "an offer that was withdrawn is no job");
    assert_eq!(second.handle(AgentInput::Offer(offer("j_2", 1))), [AgentAction::Start(offer("j_2", 1))]);
}

#[test]
fn drain_and_shutdown_exit_when_idle() {
    for input in [
        AgentInput::Shutdown,
        AgentInput::Drain(true),
        desired(DesiredState { drain: true, ..DesiredState::default() }),
    ] {
        let mut persistent = agent(true);
        assert_eq!(persistent.handle(input.clone()), []);
        assert_eq!(persistent.handle(AgentInput::Offer(offer("j_1", 1))), []);
        assert_eq!(persistent.handle(AgentInput::Drain(false)), [AgentAction::ResetHostHealth]);
        assert_eq!(persistent.handle(AgentInput::Drain(false)), []);
        assert_eq!(persistent.handle(AgentInput::Offer(offer("j_1", 1))), [AgentAction::Start(offer("j_1", 1))]);
        assert_eq!(agent(false).handle(input.clone()), [exit_with(0)]);
        let mut busy = agent(false);
        busy.handle(AgentInput::Offer(offer("j_1", 1)));
        assert_eq!(busy.handle(input), []);
        assert_eq!(busy.handle(AgentInput::Ended(key("j_1", 1), true)), [exit_with(0)]);
    }
}

#[test]
fn agent_exits_when_the_worker_is_retired() {
    let retired = || desired(DesiredState { retired: true, ..DesiredState::default() });
    for persistent in [true, false] {
        assert_eq!(agent(persistent).handle(retired()), [exit_with(0)]);
        let mut busy = agent(persistent);
        busy.handle(AgentInput::Offer(offer("j_1", 1)));
        assert_eq!(busy.handle(retired()), []);
        assert_eq!(busy.handle(AgentInput::Ended(key("j_1", 1), true)), [exit_with(0)]);
    }
}

#[test]
fn remembered_attempts_are_bounded() {
    let mut agent = agent(true);
    let job = |n: usize| format!("j_{n}");
    for n in 0..3 * MAX_ENDED_ATTEMPTS {
        assert_eq!(agent.handle(AgentInput::Offer(offer(&job(n), 1))), [AgentAction::Start(offer(&job(n), 1))]);
        assert_eq!(agent.handle(AgentInput::Ended(key(&job(n), 1), true)), []);
    }
    assert_eq!((agent.attempts.len(), agent.ended.len()), (MAX_ENDED_ATTEMPTS, MAX_ENDED_ATTEMPTS));
    let late = AgentInput::Offer(offer(&job(3 * MAX_ENDED_ATTEMPTS - 1), 1));
    assert_eq!(agent.handle(late), [], "it has just ended");
}

#[test]
fn signals_follow_the_on_stop_policy() {
    for (on_stop, busy_actions) in [
        (OnStop::Leave, vec![exit_with(143)]),
        (OnStop::Finish, vec![]),
        (OnStop::Requeue, vec![AgentAction::Stop(key("j_1", 1), StopCause::Requeue)]),
    ] {
        assert_eq!(AgentState::new(policy(true, on_stop), []).handle(AgentInput::Signal(143)), [exit_with(143)]);
        let mut busy = AgentState::new(policy(true, on_stop), [adopted(key("j_1", 1), false)]);
        assert_eq!(busy.handle(AgentInput::Signal(143)), busy_actions);
        let known_offer = AgentInput::Offer(offer("j_1", 1));
        assert_eq!(busy.handle(known_offer), []);
        // Once for each.
        for expected in [vec![AgentAction::DeclineOffers], vec![]] {
            assert_eq!(busy.handle(AgentInput::Offer(offer("j_2", 1))), expected);
        }
        assert_eq!(busy.handle(AgentInput::Ended(key("j_1", 1), true)), [exit_with(143)]);
    }
}

#[test]
fn leaving_agent_declines_offers() {
    let several = |on_stop| AgentPolicy { max_jobs: 2, ..policy(true, on_stop) };
    let stop = || AgentAction::Stop(key("j_1", 1), StopCause::Requeue);
    let host_ends = || AgentInput::HostTerminating;
    for (on_stop, input, code, actions) in [
        (OnStop::Leave, AgentInput::Signal(143), 143, vec![exit_with(143)]),
        (OnStop::Finish, AgentInput::Signal(143), 143, vec![AgentAction::DeclineOffers]),
        (OnStop::Requeue, AgentInput::Signal(143), 143, vec![stop(), AgentAction::DeclineOffers]),
        (OnStop::Leave, host_ends(), 0, vec![stop(), AgentAction::DeclineOffers]),
    ] {
        let mut busy = AgentState::new(several(on_stop), [adopted(key("j_1", 1), false)]);
        assert_eq!(busy.handle(input), actions);
        assert_eq!(busy.handle(AgentInput::Ended(key("j_1", 1), true)), [exit_with(code)]);
    }
    // An offer that waited for a slot is dropped.
    let mut full = AgentState::new(policy(true, OnStop::Finish), [adopted(key("j_1", 1), false)]);
    assert_eq!(full.handle(AgentInput::Offer(offer("j_2", 1))), []);
    assert_eq!(full.handle(AgentInput::Signal(143)), [AgentAction::DeclineOffers]);
    assert_eq!(full.handle(desired(DesiredState { offers: vec![*offer("j_2", 1)], ..DesiredState::default() })), []);
}

#[test]
fn rejected_token_waits_for_the_running_job() {
    let rejected = || AgentInput::TokenRejected("no".to_owned());
    let exit = || AgentAction::Exit(ProcessExit { code: exit::TOKEN_REJECTED, sentence: Some("no".to_owned()) });
    assert_eq!(agent(true).handle(rejected()), [exit()]);
    let mut busy = agent(true);
    busy.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(busy.handle(rejected()), []);
    assert_eq!(busy.handle(AgentInput::Ended(key("j_1", 1), true)), [exit()]);
}

#[test]
fn only_an_idle_ephemeral_worker_gives_up() {
    let lost = || AgentInput::Unreachable("away".to_owned());
    assert_eq!(agent(true).handle(lost()), []);
    let mut busy = agent(false);
    busy.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(busy.handle(lost()), []);
    assert!(matches!(&agent(false).handle(lost())[..], [AgentAction::Exit(ProcessExit { code: 69, .. })]));
}

fn agent_with_slots(max_jobs: u32, persistent: bool) -> AgentState {
    AgentState::new(AgentPolicy { max_jobs, ..policy(persistent, OnStop::Requeue) }, [])
}

fn offer_with(job: &str, attempt: u32, gpus: &[&str]) -> Box<JobOffer> {
    Box::new(JobOffer { gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(), ..*offer(job, attempt) })
}

#[test]
fn max_jobs_run_and_the_rest_wait_in_order() {
    let mut agent = agent_with_slots(2, true);
    for job in ["j_1", "j_2"] {
        assert_eq!(agent.handle(AgentInput::Offer(offer(job, 1))), [AgentAction::Start(offer(job, 1))]);
    }
    for job in ["j_3", "j_4", "j_3"] {
        assert_eq!(agent.handle(AgentInput::Offer(offer(job, 1))), [], "{job} waits");
    }
    assert_eq!(agent.running(), [key("j_1", 1).to_running_attempt(), key("j_2", 1).to_running_attempt()]);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_2", 1), true)), [AgentAction::Start(offer("j_3", 1))]);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), [AgentAction::Start(offer("j_4", 1))]);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_3", 1), true)), [], "nothing is started twice");
}

#[test]
fn cancelled_or_replaced_pending_offer_does_not_start() {
    let mut agent = agent_with_slots(1, true);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    for waiting in [offer("j_2", 1), offer("j_3", 1), offer("j_4", 1), offer("j_3", 2)] {
        agent.handle(AgentInput::Offer(waiting));
    }
    agent.handle(AgentInput::Stop(key("j_2", 1), StopReason::Superseded));
    agent.handle(AgentInput::Stop(key("j_3", 1), StopReason::Superseded));
    assert_eq!(
        agent.handle(AgentInput::Ended(key("j_1", 1), true)),
        [AgentAction::Start(offer("j_3", 2))],
        "it keeps its position"
    );
    assert_eq!(agent.handle(AgentInput::Ended(key("j_3", 2), true)), [AgentAction::Start(offer("j_4", 1))]);
}

#[test]
fn stop_affects_one_attempt_and_signal_all() {
    let mut agent = agent_with_slots(3, true);
    for job in ["j_1", "j_2", "j_3"] {
        agent.handle(AgentInput::Offer(offer(job, 1)));
    }
    let cancel = AgentInput::Stop(key("j_2", 1), StopReason::Cancelled);
    assert_eq!(agent.handle(cancel), [AgentAction::Stop(key("j_2", 1), StopCause::Cancelled)]);
    let stop = |job| AgentAction::Stop(key(job, 1), StopCause::Requeue);
    assert_eq!(agent.handle(AgentInput::Signal(143)), [stop("j_1"), stop("j_3"), AgentAction::DeclineOffers]);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_2", 1), true)), []);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), [], "the last attempt is still running");
    assert_eq!(agent.handle(AgentInput::Ended(key("j_3", 1), true)), [exit_with(143)]);
}

#[test]
fn newer_attempt_waits_for_the_older_one() {
    let mut agent = agent_with_slots(2, true);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    assert_eq!(
        agent.handle(AgentInput::Offer(offer("j_1", 2))),
        [AgentAction::Stop(key("j_1", 1), StopCause::Superseded)]
    );
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_2", 1))), [AgentAction::Start(offer("j_2", 1))]);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), false)), [AgentAction::Start(offer("j_1", 2))]);
}

#[test]
fn no_two_attempts_share_a_gpu() {
    let adopted_attempt = AdoptedAttempt { key: key("j_0", 1), gpus: vec!["GPU-0".to_owned()], is_finished: false };
    let mut agent = AgentState::new(AgentPolicy { max_jobs: 4, ..policy(true, OnStop::Leave) }, [adopted_attempt]);
    assert_eq!(
        agent.handle(AgentInput::Offer(offer_with("j_1", 1, &["GPU-1", "GPU-0"]))),
        [],
        "an adopted attempt uses GPU-0"
    );
    let other_offer = offer_with("j_2", 1, &["GPU-2"]);
    assert_eq!(agent.handle(AgentInput::Offer(other_offer.clone())), [AgentAction::Start(other_offer)]);
    let expected = [AgentAction::Start(offer_with("j_1", 1, &["GPU-1", "GPU-0"]))];
    assert_eq!(agent.handle(AgentInput::Ended(key("j_0", 1), true)), expected);
}

#[test]
fn ephemeral_worker_exits_with_its_last_attempt() {
    let mut agent = agent_with_slots(2, false);
    agent.handle(AgentInput::Offer(offer("j_1", 1)));
    agent.handle(AgentInput::Offer(offer("j_2", 1)));
    agent.handle(AgentInput::Offer(offer("j_3", 1)));
    assert_eq!(agent.handle(AgentInput::Ended(key("j_1", 1), true)), [], "it is retired, and accepts nothing new");
    assert_eq!(agent.handle(AgentInput::Offer(offer("j_4", 1))), []);
    assert_eq!(agent.handle(AgentInput::Ended(key("j_2", 1), true)), [exit_with(0)]);
}
