//! A secret is stored by the server, passed to the trainer, and appears nowhere else.

use serde_json::json;

use crate::harness::TestFleet;

const VALUE: &str = "hf_0123456789abcdef";

/// Shows that it has the value without printing it, and then prints it like careless programs do.
const LEAKING_TRAINER: &str = r#"
import hashlib, os, sys
value = os.environ["HF_TOKEN"]
print("sha256", hashlib.sha256(value.encode()).hexdigest())
print("using token", value, flush=True)
sys.exit("401: bad token " + value)
"#;

#[tokio::test]
async fn secret_reaches_the_trainer_only() {
    let mut fleet = TestFleet::start().await;
    fleet.api.put("/api/secrets/hf_token", &json!({"value": VALUE})).await;
    // It survives a restart.
    fleet.kill_server().await;
    fleet.start_server().await;
    let host = fleet.add_host("careless").await.with_python_trainer(LEAKING_TRAINER);
    let _agent = host.start();
    let request = json!({"config_name": "digits-quick", "target": "worker", "secrets": ["HF_TOKEN"]});
    let job = fleet.api.submit_with(&request).await;
    let failed = fleet.api.wait_for_job(&job, "failed").await;
    let (log, stars) = (fleet.api.log(&job).await, "*".repeat(VALUE.len()));
    let digest = "b436ebb83a6770dd4e1fb8f706fdc7426e524930c6ad7c77189ac8b7c6f39868";
    assert!(log.contains(&format!("using token {stars}\n")), "{log}");
    assert!(log.contains(&format!("sha256 {digest}")), "{log}");
    let error = failed["error"].as_str().unwrap_or_default();
    assert!(error.contains(&format!("bad token {stars}")), "{error}");
    let events = fleet.api.get(&format!("/api/queue/{job}/events")).await.to_string();
    assert!(events.contains("secret.delivered") && events.contains("HF_TOKEN"), "{events}");
    for text in [log, error.to_owned(), events, failed.to_string(), fleet.api.get("/api/secrets").await.to_string()] {
        assert!(!text.contains(VALUE), "{text}");
    }
}
