//! Two trainers of an exclusive job never run at once (invariant I1), whatever happens to the first one's agent.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use crate::harness::{NetworkCondition, NetworkProxy, TestFleet, WorkerHost, trainers, wait_until};

/// The timeout after which a silent worker is offline; its agent sends four heartbeats in that time.
const SHORT_TIMEOUT: &[(&str, &str)] = &[("SIMPLETUNER_HEARTBEAT_TIMEOUT", "6")];

/// Returns when a host's trainer started and was last alive, in seconds of a clock that all processes share.
fn trainer_lifetime(host: &WorkerHost) -> Option<(f64, f64)> {
    let read = |name| host.trainer_file(name)?.parse().ok();
    Some((read("began")?, read("alive")?))
}

/// Starts an exclusive job on this host.
async fn start_exclusive_job(fleet: &TestFleet, host: &WorkerHost) -> String {
    let job = json!({"config_name": "digits-quick", "target": "worker", "exclusive": true});
    let job = fleet.api.submit_with(&job).await;
    fleet.api.wait_for_job(&job, "running").await;
    wait_until("its trainer to start", async || trainer_lifetime(host)).await;
    job
}

/// Checks that the second host runs the job of the first one, without overlap.
async fn assert_one_after_the_other(fleet: &TestFleet, job: &str, first: &WorkerHost, second: &WorkerHost) {
    wait_until("the second attempt's trainer to start", async || trainer_lifetime(second)).await;
    let ((_, ended), (began, _)) =
        (trainer_lifetime(first).expect("the first one ran"), trainer_lifetime(second).expect("the second one runs"));
    assert!(ended < began, "the first trainer ran until {ended}, the second one since {began}");
    second.open_gate();
    let done = fleet.api.wait_for_job(job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&json!(2), &json!(second.worker)), "{done:#}");
}

/// Hosts whose trainers record when they are alive.
async fn two_hosts(fleet: &TestFleet) -> (WorkerHost, WorkerHost) {
    let (first, second) = (fleet.add_host("first").await, fleet.add_host("second").await);
    (first.with_python_trainer(trainers::ALIVE_AT_THE_GATE), second.with_python_trainer(trainers::ALIVE_AT_THE_GATE))
}

#[tokio::test]
async fn disconnected_host_stops_its_trainer_before_another_starts() {
    let fleet = TestFleet::start_with(SHORT_TIMEOUT).await;
    let (first, second) = two_hosts(&fleet).await;
    let proxy = NetworkProxy::new(fleet.port()).await;
    let first = first.with_url(&proxy.url());
    let _first_agent = first.start();
    let job = start_exclusive_job(&fleet, &first).await;
    proxy.set_condition(NetworkCondition::DropAll);
    let _second_agent = second.start();
    assert_one_after_the_other(&fleet, &job, &first, &second).await;
}

#[tokio::test]
async fn host_with_a_killed_or_paused_agent_stops_its_trainer_first() {
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        let fleet = TestFleet::start_with(SHORT_TIMEOUT).await;
        let (first, second) = two_hosts(&fleet).await;
        let agent = first.start();
        let job = start_exclusive_job(&fleet, &first).await;
        agent.signal(signal);
        let _second_agent = second.start();
        assert_one_after_the_other(&fleet, &job, &first, &second).await;
    }
}

#[tokio::test]
async fn disconnecting_host_stops_its_trainer_first() {
    let fleet = TestFleet::start_with(SHORT_TIMEOUT).await;
    let (first, second) = two_hosts(&fleet).await;
    let mut agent = first.start();
    let job = start_exclusive_job(&fleet, &first).await;
    agent.signal(Signal::SIGTERM);
    agent.wait().await;
    let _second_agent = second.start();
    assert_one_after_the_other(&fleet, &job, &first, &second).await;
}

#[tokio::test]
async fn host_of_a_deleted_worker_stops_its_trainer_first() {
    // Longer than the back-off before the next attempt.
    let fleet = TestFleet::start_with(&[("SIMPLETUNER_HEARTBEAT_TIMEOUT", "16")]).await;
    let (first, second) = two_hosts(&fleet).await;
    // It ignores SIGTERM.
    let stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n";
    let first = first.with_python_trainer(&format!("{stubborn}{}", trainers::ALIVE_AT_THE_GATE));
    let mut agent = first.start();
    let job = start_exclusive_job(&fleet, &first).await;
    agent.signal(Signal::SIGTERM);
    agent.wait().await;
    fleet.api.wait_for_worker(&first.worker, "offline").await;
    let deleted = fleet.api.request(Method::DELETE, &format!("/api/admin/workers/{}", first.worker), None).await;
    assert!((200..300).contains(&deleted.0), "{deleted:?}");
    let _second_agent = second.start();
    assert_one_after_the_other(&fleet, &job, &first, &second).await;
}

#[tokio::test]
async fn contact_within_the_timeout_keeps_the_trainer_running() {
    let fleet = TestFleet::start_with(SHORT_TIMEOUT).await;
    let (first, _) = two_hosts(&fleet).await;
    let proxy = NetworkProxy::new(fleet.port()).await;
    let first = first.with_url(&proxy.url());
    let _agent = first.start();
    let job = start_exclusive_job(&fleet, &first).await;
    for _ in 0..3 {
        proxy.close_all();
        fleet.api.wait_for_contact(&first.worker).await;
    }
    // Longer than a lease, with heartbeats only.
    for _ in 0..6 {
        fleet.api.wait_for_contact(&first.worker).await;
    }
    first.open_gate();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}
