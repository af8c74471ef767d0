//! Of an exclusive job no two trainers ever run at once (invariant I1), whatever became of the first one's agent.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Fleet, Host, Weather, Wire, trainers, until};

/// A worker that is silent for so long is offline; its agent beats four times as often.
const SOON: &[(&str, &str)] = &[("SIMPLETUNER_HEARTBEAT_TIMEOUT", "6")];

/// When a host's trainer began and was last alive, by a clock that all of this machine share, in seconds.
fn lived(host: &Host) -> Option<(f64, f64)> {
    let read = |name| host.left(name)?.parse().ok();
    Some((read("began")?, read("alive")?))
}

/// An exclusive job that runs on this host.
async fn exclusive(fleet: &Fleet, host: &Host) -> String {
    let job = json!({"config_name": "digits-quick", "target": "worker", "exclusive": true});
    let job = fleet.api.submit_with(&job).await;
    fleet.api.until_job(&job, "running").await;
    until("its trainer to live", async || lived(host)).await;
    job
}

/// The second host runs the job, which the first one had, and no moment was both's.
async fn assert_one_after_the_other(fleet: &Fleet, job: &str, first: &Host, second: &Host) {
    until("the second attempt's trainer to live", async || lived(second)).await;
    let ((_, ended), (began, _)) = (lived(first).expect("the first one ran"), lived(second).expect("it lives"));
    assert!(ended < began, "the first one lived until {ended}, the second one since {began}");
    second.open_gate();
    let done = fleet.api.until_job(job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&json!(2), &json!(second.worker)), "{done:#}");
}

/// Hosts whose trainers write down when they lived.
async fn two_hosts(fleet: &Fleet) -> (Host, Host) {
    let (first, second) = (fleet.host("first").await, fleet.host("second").await);
    (first.training_with(trainers::ALIVE_AT_THE_GATE), second.training_with(trainers::ALIVE_AT_THE_GATE))
}

#[tokio::test]
async fn a_host_that_is_cut_off_has_ended_its_trainer_before_another_begins() {
    let fleet = Fleet::start_with(SOON).await;
    let (first, second) = two_hosts(&fleet).await;
    let wire = Wire::to(fleet.port()).await;
    let first = first.reaching(&wire.url());
    let _cut_off = first.start();
    let job = exclusive(&fleet, &first).await;
    wire.be(Weather::Nothing);
    let _heir = second.start();
    assert_one_after_the_other(&fleet, &job, &first, &second).await;
}

#[tokio::test]
async fn so_has_one_whose_agent_is_killed_or_paused() {
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        let fleet = Fleet::start_with(SOON).await;
        let (first, second) = two_hosts(&fleet).await;
        let agent = first.start();
        let job = exclusive(&fleet, &first).await;
        agent.signal(signal);
        let _heir = second.start();
        assert_one_after_the_other(&fleet, &job, &first, &second).await;
    }
}

#[tokio::test]
async fn and_one_that_says_goodbye() {
    let fleet = Fleet::start_with(SOON).await;
    let (first, second) = two_hosts(&fleet).await;
    let mut agent = first.start();
    let job = exclusive(&fleet, &first).await;
    agent.signal(Signal::SIGTERM);
    agent.ended().await;
    let _heir = second.start();
    assert_one_after_the_other(&fleet, &job, &first, &second).await;
}

#[tokio::test]
async fn and_one_whose_worker_is_deleted_while_its_trainer_goes_on() {
    // Longer than the back-off after which it would go to somebody else.
    let fleet = Fleet::start_with(&[("SIMPLETUNER_HEARTBEAT_TIMEOUT", "16")]).await;
    let (first, second) = two_hosts(&fleet).await;
    // It lives for as long as it may.
    let stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n";
    let first = first.training_with(&format!("{stubborn}{}", trainers::ALIVE_AT_THE_GATE));
    let mut agent = first.start();
    let job = exclusive(&fleet, &first).await;
    agent.signal(Signal::SIGTERM);
    agent.ended().await;
    fleet.api.until_worker(&first.worker, "offline").await;
    let deleted = fleet.api.ask(Method::DELETE, &format!("/api/admin/workers/{}", first.worker), None).await;
    assert!((200..300).contains(&deleted.0), "{deleted:?}");
    let _heir = second.start();
    assert_one_after_the_other(&fleet, &job, &first, &second).await;
}

#[tokio::test]
async fn who_is_heard_in_time_goes_on() {
    let fleet = Fleet::start_with(SOON).await;
    let (first, _) = two_hosts(&fleet).await;
    let wire = Wire::to(fleet.port()).await;
    let first = first.reaching(&wire.url());
    let _agent = first.start();
    let job = exclusive(&fleet, &first).await;
    for _ in 0..3 {
        wire.cut();
        fleet.api.until_heard_again(&first.worker).await;
    }
    // Longer than a lease, by its agent's beats alone.
    for _ in 0..6 {
        fleet.api.until_heard_again(&first.worker).await;
    }
    first.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}
