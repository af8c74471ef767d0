//! `simpletuner workers …`

use serde_json::json;

use super::harness::{CliHarness, mask_ids};
use crate::tests::harness::Actor;

#[tokio::test]
async fn worker_is_created_and_only_its_token_goes_to_stdout() {
    let harness = CliHarness::start().await;
    let created = harness.run(&["workers", "create", "gpu-1", "--persistent", "--label", "room=a"]).await;
    assert!(
        created.err.contains("gpu-1") && created.err.contains("shown once") && created.err.contains("--persistent")
    );
    assert!(created.err.contains("SIMPLETUNER_WORKER_TOKEN=wt_… simpletuner worker --orchestrator-url http://"));
    let err = created.err.clone();
    let token = created.single_line();
    assert!(token.starts_with("wt_") && !err.contains(&token), "{err}");
    harness.server.register(&Actor::worker(token.clone()), json!([])).await;

    let ephemeral = "Without --persistent, the agent exits after one job.";
    assert!(!err.contains(ephemeral), "{err}");
    let untyped = harness.run(&["workers", "create", "untyped"]).await;
    assert!(untyped.err.trim_end().ends_with(ephemeral), "{}", untyped.err);
    assert!(untyped.single_line().starts_with("wt_"));

    let quiet = harness.run(&["workers", "create", "gpu-2", "--quiet"]).await;
    assert!(quiet.err.is_empty() && quiet.single_line().starts_with("wt_"));
    let document = harness.run(&["workers", "create", "gpu-3", "--ephemeral", "--json"]).await.json();
    assert!(document["token"].as_str().is_some_and(|token| token.starts_with("wt_")), "{document}");

    let rotated = harness.run(&["workers", "rotate", "gpu-1", "--yes"]).await.single_line();
    assert!(rotated.starts_with("wt_") && rotated != token);
    harness.run(&["workers", "create", "gpu-1"]).await.expect_failure(1, "(name_taken)");
    harness.run(&["workers", "create", "x", "--label", "novalue"]).await.expect_failure(2, "KEY=VALUE");
}

#[tokio::test]
async fn workers_are_listed_in_every_format() {
    let harness = CliHarness::start().await;
    let empty = harness.run(&["workers", "list"]).await;
    assert!(empty.err.contains("workers create") && empty.expect_success().is_empty());
    let (_, _, _stream) = harness.server.connect_worker("gpu-1").await;
    harness.run(&["workers", "create", "gpu-2", "--label", "room=a", "-q"]).await.expect_success();
    let table = "\
NAME   STATUS   GPUS  JOBS  LABELS  SEEN      ID
gpu-1  idle     cpu                 just now  w_ID
gpu-2  offline              room=a  never     w_ID
";
    assert_eq!(mask_ids(&harness.run(&["workers", "list"]).await.expect_success()), table);
    let idle = harness.run(&["workers", "list", "--status", "idle", "--quiet"]).await.single_line();
    assert!(idle.starts_with("w_"));
    for (filter, value) in [("--label", "room=*"), ("--search", "GPU-2")] {
        let found = harness.run(&["workers", "list", filter, value, "--json"]).await.json();
        assert_eq!((&found["total"], &found["workers"][0]["name"]), (&json!(1), &json!("gpu-2")), "{filter}");
    }
    harness.run(&["workers", "list", "--status", "idel"]).await.expect_failure(2, "a similar value exists: 'idle'");
    harness.run(&["workers", "lst"]).await.expect_failure(2, "a similar subcommand exists: 'list'");
}

#[tokio::test]
async fn one_worker_is_shown_drained_resumed_and_deleted() {
    let harness = CliHarness::start().await;
    let (id, _) = harness.server.create_worker("gpu-1").await;
    let facts = "\
name          gpu-1
id            w_ID
status        offline
since         2024-01-15 10:30:00 UTC
unhealthy     –
drain reason  –
type          set by the agent
gpus
labels
jobs
last seen     never
host          –
agent         –
created       2024-01-15 10:30:00 UTC
token expiry  2024-02-14 10:30:00 UTC, unless an agent registers first
";
    assert_eq!(mask_ids(&harness.run(&["workers", "show", "gpu-1"]).await.expect_success()), facts);
    assert_eq!(harness.run(&["workers", "show", &id, "--json"]).await.json()["name"], "gpu-1");
    let drained =
        harness.run(&["workers", "drain", "gpu-1", "--reason", "fans", "--deadline", "60", "--json"]).await.json();
    assert_eq!((&drained["draining"], &drained["drain_reason"]), (&json!(true), &json!("fans")));
    let table = harness.run(&["workers", "list"]).await.expect_success();
    assert!(table.contains("offline, draining"), "{table}");
    assert_eq!(harness.run(&["workers", "resume", "gpu-1", "-q"]).await.single_line(), id);

    harness.run(&["workers", "delete", "gpu-1"]).await.expect_failure(2, "add --yes");
    harness
        .run_with_answers(&harness.client, &["workers", "delete", "gpu-1"], &["n"])
        .await
        .expect_failure(1, "nothing was changed");
    let deleted = harness.run_with_answers(&harness.client, &["workers", "delete", "gpu-1"], &["yes"]).await;
    assert!(deleted.err.contains("Deleted gpu-1") && deleted.expect_success().is_empty());
    harness.run(&["workers", "show", "gpu-1"]).await.expect_failure(1, "worker \"gpu-1\" not found");
}

#[tokio::test]
async fn a_worker_with_a_lost_connection_is_deleted_unless_it_runs_a_job() {
    let harness = CliHarness::start().await;
    let (id, _, events) = harness.server.connect_worker("gpu-1").await;
    harness.server.drop_stream(&id, events).await;
    assert_eq!(harness.run(&["workers", "delete", "gpu-1", "-yq"]).await.single_line(), id);

    harness.server.put_config("digits").await;
    let (id, key, mut events) = harness.server.connect_worker("gpu-2").await;
    let job = harness.server.submit("digits").await;
    events.next_offer().await;
    harness.server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    harness.server.drop_stream(&id, events).await;
    harness
        .run(&["workers", "delete", "gpu-2", "--yes"])
        .await
        .expect_failure(1, "counts as offline after 2024-01-15T10:32:00");
}

#[tokio::test]
async fn gpus_are_shown_with_readings_and_reasons() {
    let harness = CliHarness::start().await;
    let (_, key) = harness.server.create_worker("gpu-1").await;
    let gpu = |n: u32| json!({"index": n, "uuid": format!("GPU-{n}"), "name": "A100", "vram_gb": 80.0});
    let register =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": [gpu(0), gpu(1)], "max_jobs": 2});
    harness.server.post(&key, "/api/workers/register", register).await.expect_status(200);
    let _stream = harness.server.open_stream(&key).await;
    harness.server.put_config("digits").await;
    let job = harness.server.submit("digits").await;
    let unavailable = json!({"reason": "in_use", "detail": "process 4711 (python\u{1b})"});
    let full = json!({"uuid": "GPU-0", "utilization_percent": 97.0, "memory_used_gb": 61.5, "temperature_celsius": 71.0,
        "power_watts": 390.0, "power_limit_watts": 400.0, "clock_mhz": 1410, "memory_clock_mhz": 1593});
    let readings = json!({"at": "2024-01-15T10:30:00Z", "gpus": [full, {"uuid": "GPU-1", "unavailable": unavailable}]});
    harness
        .server
        .post(&key, "/api/workers/heartbeat", json!({"telemetry": [readings], "unhealthy_reason": "full"}))
        .await
        .expect_status(200);
    let output = harness.run(&["workers", "show", "gpu-1"]).await.expect_success();
    assert!(output.contains("unhealthy     full\n"), "{output}");
    assert!(output.contains("gpus          2× A100 80 GB, 1 unavailable\n"), "{output}");
    let table = format!(
        "\
GPU  MODEL  STATE                          MEMORY        USE  TEMP   POWER        CLOCKS           READ      UUID
0    A100   {job}   61.5 / 80 GB  97%  71 °C  390 / 400 W  1410 / 1593 MHz  just now  GPU-0
1    A100   in use: process 4711 (python)  80 GB         –    –      –            –                just now  GPU-1
"
    );
    assert!(output.ends_with(&table), "{output}\n{table}");
    assert_eq!(
        harness.run(&["workers", "show", "gpu-1", "--json"]).await.json()["gpus"][1]["unavailable"]["reason"],
        "in_use"
    );
}
