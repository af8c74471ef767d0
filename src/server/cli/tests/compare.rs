//! `simpletuner jobs compare`

use serde_json::{Value, json};

use super::harness::{CliHarness, mask_ids};

/// Runs a job with this learning rate to its end, with a last loss.
async fn train(harness: &CliHarness, key: &crate::tests::harness::Actor, overrides: Value, loss: f64) -> String {
    let body = json!({"config_name": "digits", "target": "worker", "overrides": overrides});
    let submitted = harness.server.post(&crate::tests::harness::Actor::Admin, "/api/queue/submit", body).await;
    let job = submitted.expect_status(201)["job_id"].as_str().expect("text").to_owned();
    for status in ["starting", "running"] {
        harness.server.report_status(key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    let point = json!({"step": 5, "at": "2024-01-15T10:30:00Z", "loss": loss});
    let path = format!("/api/workers/job/{job}/progress");
    harness.server.post(key, &path, json!({"attempt": 1, "points": [point]})).await.expect_status(200);
    harness.server.report_status(key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    job
}

#[tokio::test]
async fn differences_and_final_metrics_fit_the_terminal() {
    let mut harness = CliHarness::start().await;
    harness.server.put_config("digits").await;
    let (_, key, _stream) = harness.server.connect_worker("gpu-1").await;
    let first = train(&harness, &key, json!({"learning_rate": 0.1}), 0.5).await;
    let second = train(&harness, &key, json!({"learning_rate": 0.2}), 0.25).await;
    let output = harness.run(&["jobs", "compare", &first, &second]).await.expect_success();
    let expected = "\
SETTING        1    2
learning_rate  0.1  0.2
";
    assert!(output.contains(expected), "{output}");
    assert!(output.contains("METRIC  1       2\nloss    0.5000  0.2500 best\n"), "{output}");
    assert!(output.contains("more settings are the same.\n"), "{output}");
    assert!(mask_ids(&output).contains("1   j_ID  completed  digits #1\n"), "{output}");

    let twin = train(&harness, &key, json!({"learning_rate": 0.1}), 0.5).await;
    let same = harness.run(&["jobs", "compare", &first, &twin, "j_none"]).await;
    assert!(same.err.contains("Not compared, because they do not exist or you may not see them: j_none"), "{same:?}");
    assert!(same.expect_success().contains("No differences: "));
    let document = harness.run(&["jobs", "compare", &first, &twin, "--json"]).await.json();
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        harness.run(&["jobs", "compare", &first, &twin, "-q"]).await.expect_success(),
        format!("{first}\n{twin}\n")
    );
    harness.run(&["jobs", "compare", &first]).await.expect_failure(2, "2 values required");
    harness.run(&["jobs", "compare", &first, &first]).await.expect_failure(1, "must be 2 to 20 job IDs");

    let mut jobs = vec![first, second];
    for number in 0..6 {
        jobs.push(train(&harness, &key, json!({"learning_rate": 0.1, "note": "x".repeat(40 + number)}), 1.0).await);
    }
    let args: Vec<&str> = ["jobs", "compare"].into_iter().chain(jobs.iter().map(String::as_str)).collect();
    for width in [60, 80, 120] {
        harness.width = Some(width);
        let output = harness.run(&args).await.expect_success();
        assert!(output.lines().all(|line| line.chars().count() <= width), "{width}: {output}");
        let headings = output.lines().filter(|line| line.starts_with("METRIC"));
        let numbers: Vec<&str> = headings.flat_map(|line| line.split_whitespace().skip(1)).collect();
        assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7", "8"], "{width}: {output}");
    }
}
