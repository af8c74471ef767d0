//! SIGTERM ends the server in order and soon, and everybody comes back to the next one.

use crate::harness::{ADMIN, Fleet, trainers};

#[tokio::test]
async fn open_streams_do_not_hold_up_the_end() {
    let mut fleet = Fleet::start().await;
    let (idle, busy) = (fleet.host("idle").await, fleet.host("busy").await.training_with(trainers::AT_THE_GATE));
    let _busy_agent = busy.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    let _idle_agent = idle.start();
    fleet.api.until_worker(&idle.worker, "idle").await;
    let events = format!("{}/api/events", fleet.api.url());
    let browser = reqwest::Client::new().get(events).bearer_auth(ADMIN).send().await.expect("a stream");
    assert_eq!(browser.status(), 200);

    let (code, said) = fleet.stop_server().await;
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("did not end in time"), "the end was forced: {said}");
    drop(browser);

    fleet.start_server().await;
    fleet.api.until_worker(&idle.worker, "idle").await;
    fleet.api.until_worker(&busy.worker, "busy").await;
    busy.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}
