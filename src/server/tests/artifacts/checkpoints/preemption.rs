//! Running jobs are stopped for waiting ones, and continue from their checkpoint.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::CheckpointScenario;
use crate::tests::harness::Actor;

const MINUTE: Millis = Millis(60_000);

async fn submit(scenario: &CheckpointScenario, actor: &Actor, class: &str) -> String {
    let body = json!({"config_name": "digits", "target": "worker", "class": class});
    let submitted = scenario.server.post(actor, "/api/queue/submit", body).await.expect_status(201);
    submitted["job_id"].as_str().expect("text").to_owned()
}

/// Lets minutes pass while the worker runs its job.
async fn pass(scenario: &CheckpointScenario, minutes: u32) {
    for _ in 0..minutes {
        scenario.server.advance(MINUTE).await;
        desired_stops(scenario).await;
    }
}

/// The attempts that the worker is to stop.
async fn desired_stops(scenario: &CheckpointScenario) -> Vec<(String, String)> {
    let claims = json!([{"job_id": scenario.job, "attempt": scenario.attempt}]);
    let desired = scenario.server.heartbeat(&scenario.key, claims).await;
    let reason = |reason| json!(reason).as_str().expect("a word").to_owned();
    desired.stop.into_iter().map(|stop| (stop.job_id.to_string(), reason(stop.reason))).collect()
}

/// The job that the scenario's worker runs, stopped as requested: it reports that it was returned.
async fn stop(scenario: &CheckpointScenario) {
    assert_eq!(desired_stops(scenario).await, [(scenario.job.clone(), "drained".to_owned())]);
    scenario.report("requeue").await;
}

async fn explain(scenario: &CheckpointScenario, job: &str) -> Value {
    scenario.server.get(&Actor::Admin, &format!("/api/queue/{job}/explain")).await.expect_status(200)
}

async fn audited(scenario: &CheckpointScenario, job: &str) -> Vec<String> {
    let events = scenario.server.get(&Actor::Admin, &format!("/api/queue/{job}/events")).await.expect_status(200);
    let word = |event: &Value| event["event"].as_str().expect("a word").to_owned();
    events["events"].as_array().expect("a list").iter().map(word).collect()
}

#[tokio::test]
async fn idle_job_makes_room_and_continues_from_its_checkpoint() {
    let scenario = CheckpointScenario::start().await;
    let ada = scenario.server.add_user("ada", "researcher").await;
    // The first job of the scenario is not idle: replace it.
    scenario.report("completed").await;
    let idle = submit(&scenario, &ada, "idle").await;
    let mut scenario = scenario.start_next_attempt().await;
    assert_eq!(scenario.job, idle);
    pass(&scenario, 3).await;
    scenario.save_checkpoint(500, "weights").await;
    // The next checkpoint is late, so it is not awaited.
    pass(&scenario, 12).await;
    let normal = submit(&scenario, &Actor::Admin, "normal").await;
    assert_eq!(explain(&scenario, &normal).await["verdict"], "busy");
    scenario.server.advance(Millis(2_000)).await;
    let explained = explain(&scenario, &normal).await;
    assert_eq!((&explained["verdict"], &explained["worker_id"]), (&json!("preempting"), &json!(scenario.worker)));
    assert!(explained["text"].as_str().is_some_and(|text| text.contains("gpu-1 are being stopped")), "{explained}");
    stop(&scenario).await;
    let view = scenario.server.job(&idle).await;
    assert_eq!(
        (&view["status"], &view["loss_code"], &view["retry_at"]),
        (&json!("queued"), &json!("preempted"), &json!(null))
    );
    let text = format!("Stopped so that job {normal} could start. It continues from step 500; lost work: 12 min.");
    assert_eq!(view["error"], text);
    assert_eq!(view["attempts"][0]["outcome"], "lost");
    // What is freed is for the other job, and the idle one continues afterwards.
    let offer = scenario.events.next_offer().await;
    assert_eq!(offer.job_id.as_str(), normal);
    let report = |status| json!({"status": status, "attempt": 1});
    for status in ["running", "completed"] {
        scenario.server.report_status(&scenario.key, &normal, report(status)).await.expect_status(200);
    }
    let scenario = scenario.start_next_attempt().await;
    assert_eq!((scenario.job.as_str(), scenario.attempt), (idle.as_str(), 2));
    assert_eq!(scenario.resume_checkpoint().await["name"], "checkpoint-500");
    let view = scenario.server.job(&idle).await;
    assert_eq!((&view["attempt"], &view["max_attempts"]), (&json!(2), &json!(4)), "it has all of its retries");
    let events = audited(&scenario, &idle).await;
    assert_eq!(events[2..5], ["job.running", "job.preempting", "job.requeued"].map(str::to_owned), "{events:?}");
}

#[tokio::test]
async fn urgent_job_waits_for_the_next_checkpoint() {
    let scenario = CheckpointScenario::start().await;
    let lead = scenario.server.add_user("lea", "lead").await;
    for step in 1..=4 {
        pass(&scenario, 5).await;
        scenario.save_checkpoint(step * 100, "weights").await;
    }
    pass(&scenario, 1).await;
    let urgent = submit(&scenario, &lead, "urgent").await;
    pass(&scenario, 1).await;
    assert_eq!(explain(&scenario, &urgent).await["verdict"], "preempting");
    assert_eq!(desired_stops(&scenario).await, [], "its next checkpoint comes in 3 minutes");
    pass(&scenario, 3).await;
    scenario.save_checkpoint(500, "weights").await;
    stop(&scenario).await;
    let view = scenario.server.job(&scenario.job).await;
    let text = format!("Stopped so that job {urgent} could start. It continues from step 500; lost work: 0 min.");
    assert_eq!(view["error"], text);
}

#[tokio::test]
async fn a_checkpoint_that_never_comes_is_not_awaited_longer_than_patience() {
    let scenario = CheckpointScenario::start().await;
    let lead = scenario.server.add_user("lea", "lead").await;
    for step in 1..=3 {
        pass(&scenario, 8).await;
        scenario.save_checkpoint(step * 100, "weights").await;
    }
    let urgent = submit(&scenario, &lead, "urgent").await;
    pass(&scenario, 9).await;
    assert_eq!(desired_stops(&scenario).await, []);
    pass(&scenario, 3).await;
    assert_eq!(desired_stops(&scenario).await.len(), 1);
    // The trainer ignores it, and the decision expires: the worker is no longer reserved.
    pass(&scenario, 6).await;
    assert_eq!(explain(&scenario, &urgent).await["verdict"], "preempting", "it was decided again");
}

#[tokio::test]
async fn nothing_is_stopped_for_a_job_that_was_cancelled() {
    let scenario = CheckpointScenario::start().await;
    let lead = scenario.server.add_user("lea", "lead").await;
    pass(&scenario, 25).await;
    let urgent = submit(&scenario, &lead, "urgent").await;
    scenario.server.advance(Millis(2_000)).await;
    assert_eq!(desired_stops(&scenario).await.len(), 1, "it has no checkpoint to wait for");
    scenario.server.call(&lead, "POST", &format!("/api/queue/{urgent}/cancel"), "").await.expect_status(200);
    assert_eq!(desired_stops(&scenario).await, []);
    assert_eq!(scenario.server.job_status(&scenario.job).await, "running");
}

#[tokio::test]
async fn guaranteed_gpus_are_taken_back_and_lost_work_is_not_charged() {
    let scenario = CheckpointScenario::start().await;
    let server = &scenario.server;
    let ada = server.add_user("ada", "researcher").await;
    let settings = json!({"name": "vision", "settings": {"guaranteed_gpus": 1}});
    server.post(&Actor::Admin, "/api/teams", settings).await.expect_status(201);
    server.call(&Actor::Admin, "PUT", "/api/teams/vision/members/ada", "{}").await.expect_status(200);
    pass(&scenario, 10).await;
    scenario.save_checkpoint(100, "weights").await;
    pass(&scenario, 10).await;
    submit(&scenario, &ada, "normal").await;
    server.advance(Millis(2_000)).await;
    stop(&scenario).await;
    let shares = server.get(&Actor::Admin, "/api/shares").await.expect_status(200);
    let of_default = shares["teams"].as_array().expect("a list").iter().find(|team| team["name"] == "default");
    let minutes = of_default.expect("listed")["month_gpu_hours"].as_f64().expect("a number") * 60.0;
    let has_gpus = shares["gpus"] != 0;
    assert!(!has_gpus || (9.5..11.0).contains(&minutes), "{minutes} min: {shares}");
}
