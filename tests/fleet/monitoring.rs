//! Prometheus accepts the server's metrics, and the shipped alert rules fire when they should.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::harness::{TestFleet, repository, trainers};

#[tokio::test]
async fn promtool_accepts_the_metrics() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("gpu-1").await.with_python_trainer(trainers::AT_THE_GATE);
    let _agent = host.start();
    let job = fleet.submit_running_job().await;
    let page = fleet.api.get_text("/metrics", "text/plain").await;
    assert!(page.contains("simpletuner_jobs{state=\"running\"} 1"), "{job}: {page}");
    promtool(&["check", "metrics"], Path::new("."), &page).await;
    host.open_gate();
    fleet.api.wait_for_job(&job, "completed").await;
}

#[tokio::test]
async fn alerts_fire_on_time() {
    let dir = repository("deploy/prometheus");
    promtool(&["check", "rules", "simpletuner.rules.yml"], &dir, "").await;
    promtool(&["test", "rules", "simpletuner.test.yml"], &dir, "").await;
}

/// Runs `promtool` on this input; it must succeed without output.
async fn promtool(arguments: &[&str], dir: &Path, input: &str) {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = command.spawn();
    let mut promtool = started.expect("promtool: `scripts/setup browser` installs it");
    let mut stdin = promtool.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).await.expect("it reads");
    drop(stdin);
    let output = promtool.wait_with_output().await.expect("it ends");
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}: {printed}");
}
