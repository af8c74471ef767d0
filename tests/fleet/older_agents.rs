//! SimpleTuner's own agent works unchanged.

use serde_json::json;
use tokio::process::Command;

use crate::harness::{Program, TestFleet, WorkerHost, repository, wait_until};

/// Differences between its releases; see `older_agent.py`.
const RELEASES: [&str; 3] = ["A", "B", "C"];

/// A fleet with a configuration that only has a data loader: an older agent is not sent configurations with more files.
async fn fleet() -> TestFleet {
    let fleet = TestFleet::start().await;
    let files = json!({"config.json": "{\"model_type\": \"lora\"}", "multidatabackend.json": "[]"});
    fleet.api.put("/api/configs/plain", &json!({"files": files})).await;
    fleet
}

fn start(host: &WorkerHost, release: &str) -> Program {
    start_as(host, release, "older")
}

fn start_as(host: &WorkerHost, release: &str, name: &str) -> Program {
    let mut command = Command::new("python3");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", host.home());
    command.env("MEET", host.meeting_dir()).env("RELEASE", release);
    command.env("SIMPLETUNER_ORCHESTRATOR_URL", host.url()).env("SIMPLETUNER_WORKER_TOKEN", &host.token);
    command.arg(repository("tests/fleet/older_agent.py"));
    Program::start(command, host.home().with_extension(format!("{name}.log")))
}

fn rejection_count(agent: &Program) -> usize {
    agent.output().matches("rejected 409").count()
}

#[tokio::test]
async fn older_agent_runs_jobs_and_drains() {
    for release in RELEASES {
        let fleet = fleet().await;
        let host = fleet.add_host("old").await;
        let agent = start(&host, release);
        let worker = fleet.api.wait_for_worker(&host.worker, "idle").await;
        assert_eq!((&worker["gpu_name"], &worker["gpu_count"]), (&"NVIDIA A100".into(), &1.into()));
        let job = fleet.api.submit_with(&json!({"config_name": "plain", "gpu_count": 1})).await;
        fleet.api.wait_for_job(&job, "running").await;
        fleet.api.post(&format!("/api/admin/workers/{}/drain", host.worker), &json!({})).await;
        let waiting = fleet.api.submit("plain").await;
        host.open_gate();
        fleet.api.wait_for_job(&job, "completed").await;
        fleet.api.wait_for_worker(&host.worker, "draining").await;
        assert_eq!(fleet.api.job(&waiting).await["attempt"], 0);
        fleet.api.post(&format!("/api/admin/workers/{}/resume", host.worker), &json!({})).await;
        fleet.api.wait_for_job(&waiting, "completed").await;
        assert!(!agent.output().contains("Traceback"), "{release}: {}", agent.output());
    }
}

#[tokio::test]
async fn older_agent_accepts_each_first_offer() {
    for release in RELEASES {
        let fleet = fleet().await;
        let host = fleet.add_host("old").await;
        let agent = start(&host, release);
        host.open_gate();
        let mut jobs = Vec::new();
        for _ in 0..4 {
            jobs.push(fleet.api.submit("plain").await);
        }
        for job in jobs {
            let done = fleet.api.wait_for_job(&job, "completed").await;
            assert_eq!(done["attempt"], 1, "{release}: {done:#}");
        }
        assert!(!agent.output().contains("ignoring"), "{release}: {}", agent.output());
    }
}

#[tokio::test]
async fn older_agent_runs_a_configuration_without_data_loader() {
    for release in RELEASES {
        let fleet = fleet().await;
        let files = json!({"files": {"config.json": "{\"model_type\": \"lora\"}"}});
        fleet.api.put("/api/configs/bare", &files).await;
        let host = fleet.add_host("old").await;
        let agent = start(&host, release);
        host.open_gate();
        let job = fleet.api.submit("bare").await;
        fleet.api.wait_for_job(&job, "completed").await;
        assert!(!agent.output().contains("worker error"), "{release}: {}", agent.output());
    }
}

#[tokio::test]
async fn preview_and_explain_name_the_files_that_an_older_agent_does_not_get() {
    for release in RELEASES {
        let fleet = fleet().await;
        let config = "{\"lycoris_config\": \"lycoris_config.json\"}";
        let files = json!({"config.json": config, "multidatabackend.json": "[]", "lycoris_config.json": "{}"});
        fleet.api.put("/api/configs/lycoris", &json!({"files": files})).await;
        let host = fleet.add_host("old").await;
        let agent = start(&host, release);
        fleet.api.wait_for_worker(&host.worker, "idle").await;
        let request = json!({"config_name": "lycoris", "dry_run": true});
        let preview = fleet.api.post("/api/queue/submit", &request).await;
        let job = fleet.api.submit("lycoris").await;
        let pending_explanation = fleet.api.get(&format!("/api/queue/{job}/explain")).await;
        for explanation in [&preview["explanation"], &pending_explanation] {
            let blocker = &explanation["workers"][0]["blockers"][0];
            assert_eq!(blocker["code"], "lacks_files", "{release}: {explanation:#}");
            let text = blocker["text"].as_str().unwrap_or_default();
            let expected = ["only config.json and the data loader", "lycoris_config.json"];
            assert!(expected.iter().all(|words| text.contains(words)), "{release}: {text}");
        }
        host.open_gate();
        let plain = fleet.api.submit("plain").await;
        fleet.api.wait_for_job(&plain, "completed").await;
        let waiting = fleet.api.job(&job).await;
        assert_eq!((&waiting["status"], &waiting["attempt"]), (&json!("queued"), &json!(0)), "{release}: {waiting:#}");
        assert!(!agent.output().contains("Traceback"), "{release}: {}", agent.output());
    }
}

#[tokio::test]
async fn older_agent_cancels_only_the_cancelled_job() {
    for release in RELEASES {
        let fleet = fleet().await;
        let host = fleet.add_host("old").await;
        let _agent = start(&host, release);
        let (first, second) = (fleet.api.submit("plain").await, fleet.api.submit("plain").await);
        fleet.api.wait_for_job(&first, "running").await;
        fleet.api.post(&format!("/api/queue/{first}/cancel"), &json!({})).await;
        fleet.api.wait_for_job(&first, "cancelled").await;
        fleet.api.wait_for_job(&second, "running").await;
        host.open_gate();
        let done = fleet.api.wait_for_job(&second, "completed").await;
        assert_eq!(done["attempt"], 1, "{release}: {done:#}");
    }
}

#[tokio::test]
async fn second_older_agent_on_a_host_gets_no_job() {
    for release in RELEASES {
        let fleet = fleet().await;
        let host = fleet.add_host("old").await;
        let first = start(&host, release);
        let job = fleet.api.submit("plain").await;
        fleet.api.wait_for_job(&job, "running").await;
        let second = start_as(&host, release, "second");
        wait_until("the second agent to be rejected twice", async || (rejection_count(&second) >= 2).then_some(()))
            .await;
        let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
        assert!(worker["token_conflict"].is_object(), "{release}: {worker:#}");
        // Without a job it loses its protection: the second agent may then replace it.
        assert_eq!(first.output().matches("registered").count(), 1, "{release}: {}", first.output());
        host.open_gate();
        let done = fleet.api.wait_for_job(&job, "completed").await;
        assert_eq!(done["attempt"], 1, "{release}: {done:#}");
        assert!(!second.output().contains("heard job_submit"), "{release}: {}", second.output());
    }
}

#[tokio::test]
async fn older_agents_training_survives_a_server_restart() {
    let mut fleet = fleet().await;
    let host = fleet.add_host("old").await;
    let agent = start(&host, "C");
    let job = fleet.api.submit("plain").await;
    fleet.api.wait_for_job(&job, "running").await;
    fleet.kill_server().await;
    fleet.start_server().await;
    wait_until("the agent to continue", async || {
        agent.output().contains(&format!("resume {job} abandon False")).then_some(())
    })
    .await;
    host.open_gate();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}
