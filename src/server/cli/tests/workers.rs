//! `simpletuner workers …`

use serde_json::json;

use super::desk::{Desk, masked};
use crate::tests::harness::By;

#[tokio::test]
async fn a_worker_is_made_and_its_token_alone_goes_to_stdout() {
    let desk = Desk::open().await;
    let made = desk.run(&["workers", "create", "gpu-1", "--persistent", "--label", "room=a"]).await;
    assert!(made.err.contains("gpu-1") && made.err.contains("shown this once") && made.err.contains("--persistent"));
    assert!(made.err.contains("SIMPLETUNER_WORKER_TOKEN=wt_… simpletuner worker --orchestrator-url http://"));
    let err = made.err.clone();
    let token = made.line();
    assert!(token.starts_with("wt_") && !err.contains(&token), "{err}");
    desk.server.register(&By::worker(token.clone()), json!([])).await;

    let quiet = desk.run(&["workers", "create", "gpu-2", "--quiet"]).await;
    assert!(quiet.err.is_empty() && quiet.line().starts_with("wt_"));
    let document = desk.run(&["workers", "create", "gpu-3", "--ephemeral", "--json"]).await.json();
    assert!(document["token"].as_str().is_some_and(|token| token.starts_with("wt_")), "{document}");

    let rotated = desk.run(&["workers", "rotate", "gpu-1", "--yes"]).await.line();
    assert!(rotated.starts_with("wt_") && rotated != token);
    desk.run(&["workers", "create", "gpu-1"]).await.refused(1, "(name_taken)");
    desk.run(&["workers", "create", "x", "--label", "novalue"]).await.refused(2, "KEY=VALUE");
}

#[tokio::test]
async fn workers_are_listed_in_every_form() {
    let desk = Desk::open().await;
    let empty = desk.run(&["workers", "list"]).await;
    assert!(empty.err.contains("workers create") && empty.ok().is_empty());
    let (_, _, _stream) = desk.server.online("gpu-1").await;
    desk.run(&["workers", "create", "gpu-2", "--label", "room=a", "-q"]).await.ok();
    let table = "\
NAME   STATUS   GPUS  JOBS  LABELS  SEEN      ID
gpu-1  idle     cpu                 just now  w_ID
gpu-2  offline              room=a  never     w_ID
";
    assert_eq!(masked(&desk.run(&["workers", "list"]).await.ok()), table);
    let idle = desk.run(&["workers", "list", "--status", "idle", "--quiet"]).await.line();
    assert!(idle.starts_with("w_"));
    for (filter, value) in [("--label", "room=*"), ("--search", "GPU-2")] {
        let found = desk.run(&["workers", "list", filter, value, "--json"]).await.json();
        assert_eq!((&found["total"], &found["workers"][0]["name"]), (&json!(1), &json!("gpu-2")), "{filter}");
    }
    desk.run(&["workers", "list", "--status", "idel"]).await.refused(2, "a similar value exists: 'idle'");
    desk.run(&["workers", "lst"]).await.refused(2, "a similar subcommand exists: 'list'");
}

#[tokio::test]
async fn one_worker_is_shown_drained_resumed_and_deleted() {
    let desk = Desk::open().await;
    let (id, _) = desk.server.worker("gpu-1").await;
    let facts = "\
name          gpu-1
id            w_ID
status        offline
since         2024-01-15 10:30:00 UTC
unfit         –
drain reason  –
type          as its agent says
gpus
labels
jobs
seen          never
host          –
agent         –
made          2024-01-15 10:30:00 UTC
token ends    2024-02-14 10:30:00 UTC, unless an agent registers before
";
    assert_eq!(masked(&desk.run(&["workers", "show", "gpu-1"]).await.ok()), facts);
    assert_eq!(desk.run(&["workers", "show", &id, "--json"]).await.json()["name"], "gpu-1");
    let drained =
        desk.run(&["workers", "drain", "gpu-1", "--reason", "fans", "--deadline", "60", "--json"]).await.json();
    assert_eq!((&drained["draining"], &drained["drain_reason"]), (&json!(true), &json!("fans")));
    let table = desk.run(&["workers", "list"]).await.ok();
    assert!(table.contains("offline, draining"), "{table}");
    assert_eq!(desk.run(&["workers", "resume", "gpu-1", "-q"]).await.line(), id);

    desk.run(&["workers", "delete", "gpu-1"]).await.refused(2, "add --yes");
    desk.typing(&desk.client, &["workers", "delete", "gpu-1"], &["n"]).await.refused(1, "nothing was changed");
    let gone = desk.typing(&desk.client, &["workers", "delete", "gpu-1"], &["yes"]).await;
    assert!(gone.err.contains("gpu-1 is gone") && gone.ok().is_empty());
    desk.run(&["workers", "show", "gpu-1"]).await.refused(1, "there is no worker \"gpu-1\"");
}

#[tokio::test]
async fn a_workers_gpus_are_shown_with_their_readings_and_why_they_are_withheld() {
    let desk = Desk::open().await;
    let (_, key) = desk.server.worker("gpu-1").await;
    let gpu = |n: u32| json!({"index": n, "uuid": format!("GPU-{n}"), "name": "A100", "vram_gb": 80.0});
    let register =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": [gpu(0), gpu(1)], "max_jobs": 2});
    desk.server.post(&key, "/api/workers/register", register).await.ok(200);
    let _stream = desk.server.stream(&key).await;
    desk.server.config("digits").await;
    let job = desk.server.submit("digits").await;
    let withheld = json!({"reason": "in_use", "detail": "process 4711 (python\u{1b})"});
    let full = json!({"uuid": "GPU-0", "utilization_percent": 97.0, "memory_used_gb": 61.5, "temperature_celsius": 71.0,
        "power_watts": 390.0, "power_limit_watts": 400.0, "clock_mhz": 1410, "memory_clock_mhz": 1593});
    let moment = json!({"at": "2024-01-15T10:30:00Z", "gpus": [full, {"uuid": "GPU-1", "withheld": withheld}]});
    desk.server.post(&key, "/api/workers/heartbeat", json!({"telemetry": [moment], "unfit": "full"})).await.ok(200);
    let shown = desk.run(&["workers", "show", "gpu-1"]).await.ok();
    assert!(shown.contains("unfit         full\n"), "{shown}");
    assert!(shown.contains("gpus          2× A100 80 GB, 1 withheld\n"), "{shown}");
    let table = format!(
        "\
GPU  MODEL  STATE                                    MEMORY        USE  TEMP   POWER        CLOCKS           READ      UUID
0    A100   {job}             61.5 / 80 GB  97%  71 °C  390 / 400 W  1410 / 1593 MHz  just now  GPU-0
1    A100   in use by others: process 4711 (python)  80 GB         –    –      –            –                just now  GPU-1
"
    );
    assert!(shown.ends_with(&table), "{shown}\n{table}");
    assert_eq!(
        desk.run(&["workers", "show", "gpu-1", "--json"]).await.json()["gpus"][1]["withheld"]["reason"],
        "in_use"
    );
}
