//! Jobs from the offer to the final report.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fake_orchestrator::{ArtifactUpload, FakeOrchestrator};
use super::test_host::{TestHost, first_line, process_by_inner_pid, wait_until};

fn config() -> Value {
    json!({"config.json": "{\"--output_dir\": \"elsewhere\"}", "multidatabackend.json": "[]"})
}

#[tokio::test]
async fn ephemeral_worker_exits_after_its_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo first; printf 'a\\rb\\n' >&2; echo last")?;
    let agent = host.start(&fake)?;
    fake.wait_until("a stream", |shared| (shared.streams > 0).then_some(())).await;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    let shared = fake.state();
    assert_eq!(String::from_utf8_lossy(&shared.log), "first\na\rb\nlast\n");
    assert_eq!(shared.statuses[2]["exit_code"], 0);
    assert_eq!(shared.disconnects.len(), 1);
    assert_eq!(shared.registrations[0]["protocol"], 1);
    assert_eq!(shared.registrations[0]["persistent"], false);
    Ok(())
}

#[tokio::test]
async fn trainer_gets_only_allowed_variables() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script(
        "env; echo; cat \"$CONFIG_PATH\"; echo; pwd; cat ../supervisor.json ../secrets.json 2>/dev/null; true",
    )?
    .flags(&["--pass-env", "EXTRA", "--pass-env", "SIMPLETUNER_WORKER_TOKEN"]);
    for (name, value) in [("EXTRA", "yes"), ("AWS_SECRET", "no"), ("WANDB_API_KEY", "w")] {
        host.variables.push((name.to_owned(), value.to_owned()));
    }
    let agent = host.start(&fake)?;
    fake.offer("j_1", 3, &config());
    agent.wait_for_exit().await?;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(!log.contains("wt_test_token") && !log.contains("AWS_SECRET"), "{log}");
    let bundle = host.attempt("j_1", 3).bundle_dir();
    for line in [
        "EXTRA=yes".to_owned(),
        "WANDB_API_KEY=w".to_owned(),
        "HF_TOKEN=hf_job".to_owned(),
        "SIMPLETUNER_JOB_ID=j_1".to_owned(),
        "SIMPLETUNER_ATTEMPT=3".to_owned(),
        "SIMPLETUNER_UPLOAD_TOKEN=jt_test".to_owned(),
        "SIMPLETUNER_CONFIG_BACKEND=json".to_owned(),
        format!("SIMPLETUNER_UPLOAD_ENDPOINT={}/api/workers/job/j_1/artifacts", fake.url),
        format!("CONFIG_PATH={}", bundle.join("config.json").display()),
        host.attempt("j_1", 3).working_dir().display().to_string(),
    ] {
        assert!(log.lines().any(|found| found == line), "{line} is not in {log}");
    }
    assert!(
        log.contains("\"--data_backend_config\"") && log.contains("\"callback_url\": \"http://127.0.0.1:"),
        "{log}"
    );
    Ok(())
}

#[tokio::test]
async fn fifty_megabytes_of_output_arrive_while_heartbeats_continue() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(
        "import sys\nline = '%08d ' + 'x' * 91 + '\\n'\nfor i in range(0, 524288, 64):\n    sys.stdout.write(''.join(line % n for n in range(i, i + 64)))\n",
    )?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let shared = fake.state();
    assert_eq!(shared.log.len(), 524_288 * 101);
    for (number, line) in shared.log.chunks(101).enumerate() {
        assert!(line.starts_with(format!("{number:08} x").as_bytes()), "line {number}");
    }
    assert_eq!(shared.gaps, 0);
    Ok(())
}

#[tokio::test]
async fn silent_job_is_cancelled_immediately() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("heartbeats during a silent job", |shared| {
        (shared.heartbeats.len() > heartbeat_count + 1).then_some(())
    })
    .await;
    let trainer = host.supervisor("j_1", 1).await.trainer;
    let cancelled_at = Instant::now();
    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    assert!(cancelled_at.elapsed() < Duration::from_secs(5), "{:?}", cancelled_at.elapsed());
    assert!(!trainer.is_alive());
    assert_eq!(fake.reported_statuses(), ["starting", "running", "cancelled"]);
    agent.kill().await
}

#[tokio::test]
async fn cancel_kills_the_whole_process_tree() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // A child in its own session, and a trainer that ignores SIGTERM.
    let host = TestHost::with_python(
        "import os, signal, subprocess, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\nprint('child', child.pid, flush=True)\n\
         while not os.path.exists(os.environ['SIMPLETUNER_STOP_FILE']): time.sleep(0.01)\nprint('asked', flush=True)\ntime.sleep(1000)\n",
    )?
    .flags(&["--persistent", "--stop-grace", "1"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let child = first_line(&fake).await.trim_start_matches("child ").parse().map_err(io::Error::other)?;
    let trainer = host.supervisor("j_1", 1).await.trainer;
    let child = wait_until("the child", || process_by_inner_pid(trainer, child)).await;
    assert!(child.is_alive());
    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    assert!(!child.is_alive(), "a process of the job is alive after its end was reported");
    assert!(String::from_utf8_lossy(&fake.state().log).contains("asked"), "the stop file was shown");
    agent.kill().await
}

const EVENTS: &str = r#"
import base64, json, os, urllib.request
config = json.load(open(os.environ["CONFIG_PATH"]))
hook = config["--webhook_config"][-1]
out = config["--output_dir"]
def send(event, key=hook["auth_token"]):
    request = urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), {"X-API-Key": key, "Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=5).status
try:
    send({"type": "training.status", "progress": {"current": 666}}, "wrong")
except urllib.error.HTTPError as error:
    print("rejected", error.code)
send({"type": "lifecycle.stage", "stage": {"key": "load", "label": "Loading", "status": "running"}})
for step in range(1, 4):
    send({"type": "training.status", "data": {"status": "running"}, "progress": {"current": step, "total": 3, "metrics": {"loss": 1 / step if step < 3 else float("nan"), "lr": 0.1, "norm": step}}})
image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 10).decode()
send({"type": "notification", "message": "Validation image of `a cat, ../sitting`", "images": [image]})
os.makedirs(out + "/checkpoint-1"), os.makedirs(out + "/checkpoint-3"), os.makedirs(out + "/a b")
for name in ["checkpoint-1/model.bin", "checkpoint-3/model.bin", "weights.safetensors", "a b/c#%.txt"]:
    open(out + "/" + name, "w").write(name)
os.symlink("/etc/passwd", out + "/passwd")
"#;

#[tokio::test]
async fn events_become_progress_and_files_become_artifacts() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(EVENTS)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let shared = fake.state();
    assert_eq!(String::from_utf8_lossy(&shared.log), "rejected 401\n");
    let steps: Vec<_> = shared.points.iter().map(|point| (point["step"].as_u64(), point["loss"].as_f64())).collect();
    assert_eq!(steps, [(Some(0), None), (Some(1), Some(1.0)), (Some(2), Some(0.5)), (Some(3), None)]);
    assert_eq!(shared.points[0]["stage"], "Loading");
    assert_eq!(shared.points[3]["metrics"]["norm"], 3.0);
    let kinds: Vec<_> = shared.artifacts.iter().map(|(path, stored)| (path.as_str(), stored.kind.as_str())).collect();
    assert_eq!(
        kinds,
        [
            ("a%20b/c%23%25.txt", "other"),
            ("checkpoint-3/model.bin", "checkpoint"),
            ("validation_images/event_000005_images_0_step_3_a_cat_sitting.png", "sample"),
            ("weights.safetensors", "final"),
        ]
    );
    let expected = ArtifactUpload { kind: "final".to_owned(), bytes: b"weights.safetensors".to_vec() };
    assert_eq!(shared.artifacts["weights.safetensors"], expected);
    Ok(())
}

#[tokio::test]
async fn checkpoint_and_end_events_keep_earlier_metrics() -> io::Result<()> {
    const STAGES: &str = r#"
for step in (1, 2):
    send({"type": "training.status", "progress": {"current": step, "total": 2, "metrics": {"loss": 1 / step, "lr": 0.1}}})
    send({"type": "lifecycle.stage", "stage": {"key": "checkpoint_save", "status": "completed"}})
send({"type": "lifecycle.stage", "stage": {"key": "training_complete", "status": "completed"}})
"#;
    let (send, _) = EVENTS.split_once("try:").ok_or_else(|| io::Error::other("no event format"))?;
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(&format!("{send}{STAGES}"))?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{\"--output_dir\": \"elsewhere\"}"}));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let shared = fake.state();
    for (step, loss, stage) in [(1, 1.0, "checkpoint_save"), (2, 0.5, "training_complete")] {
        let last = shared.points.iter().rfind(|point| point["step"] == step).cloned().unwrap_or_default();
        assert_eq!((&last["loss"], &last["learning_rate"]), (&json!(loss), &json!(0.1)), "{last}");
        assert_eq!(last["stage"], stage);
    }
    Ok(())
}

#[tokio::test]
async fn samples_are_uploaded_during_the_run() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "mkdir -p ../output/validation_images; echo x > ../output/validation_images/s.png; exec sleep 1000";
    let host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let sample = "validation_images/s.png";
    fake.wait_until("a sample", |shared| shared.artifacts.contains_key(sample).then_some(())).await;
    assert_eq!(fake.reported_statuses(), ["starting", "running"]);
    agent.kill().await
}

#[tokio::test]
async fn persistent_worker_accepts_the_next_job_and_resumes() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "cat \"$CONFIG_PATH\"; ls ../output; mkdir -p ../output/checkpoint-7; echo w > ../output/checkpoint-7/w; exit 75";
    let host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.wait_for_status("requeue").await;
    assert_eq!(report["exit_code"], 75);
    assert!(!String::from_utf8_lossy(&fake.state().log).contains("latest"));
    fake.offer("j_1", 2, &config());
    let is_second_attempt = |shared: &mut super::fake_orchestrator::FakeState| {
        shared.statuses.iter().any(|report| report["status"] == "requeue" && report["attempt"] == 2).then_some(())
    };
    fake.wait_until("the second attempt", is_second_attempt).await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(log.contains("\"--resume_from_checkpoint\": \"latest\"") && log.contains("checkpoint-7"), "{log}");
    agent.kill().await
}

#[tokio::test]
async fn damaged_or_hostile_bundle_fails_with_a_reason() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo ran")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}", "../../evil": "x"}));
    let report = fake.wait_for_status("failed").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("../../evil")), "{report}");
    fake.offer("j_2", 1, &json!({"config.json": "not json"}));
    let second_failure = |shared: &mut super::fake_orchestrator::FakeState| {
        shared.statuses.iter().find(|report| report["job_id"] == "j_2" && report["status"] == "failed").cloned()
    };
    let report = fake.wait_until("the second failure", second_failure).await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("config.json")), "{report}");
    assert!(fake.state().log.is_empty());
    let dir = host.attempt("j_2", 1);
    wait_until("the secrets to be removed", || (!dir.join("secrets.json").exists()).then_some(())).await;
    agent.kill().await
}

#[tokio::test]
async fn remaining_processes_are_killed_before_the_report() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host =
        TestHost::with_script("sleep 1000 & echo child $!; setsid sleep 1000 & exit 0")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("completed").await;
    let marker = format!("SIMPLETUNER_STOP_FILE={}", host.attempt("j_1", 1).stop_file().display());
    let remaining: Vec<_> = crate::worker::process::find_by_environment(&marker);
    assert_eq!(remaining, [], "alive after the end");
    agent.kill().await
}
