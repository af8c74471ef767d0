//! `simpletuner jobs logs`

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{CliHarness, TcpRelay, client};
use crate::tests::harness::{ADMIN, Actor};

/// The output of a command so far.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SharedBuffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }

    async fn wait_for(&self, expected: &str) {
        let shown = async {
            while !self.text().contains(expected) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), shown)
            .await
            .unwrap_or_else(|_| panic!("{expected:?}: {:?}", self.text()));
    }
}

/// Starts a job; returns its id and its token.
async fn start_running_job(harness: &CliHarness) -> (String, Actor) {
    harness.server.put_config("digits").await;
    let (_, key, mut events) = harness.server.connect_worker("gpu-1").await;
    let job = harness.server.submit("digits").await;
    let offer = events.next_offer().await;
    let token = Actor::Job(offer.upload_token);
    harness.server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    (job, token)
}

async fn write(harness: &CliHarness, token: &Actor, job: &str, offset: usize, text: &[u8]) {
    let path = format!("/api/workers/job/{job}/logs?attempt=1&offset={offset}");
    harness.server.call(token, "PUT", &path, text.to_vec()).await.expect_status(200);
}

#[tokio::test]
async fn lines_are_printed_with_the_times_of_their_arrival() {
    let harness = CliHarness::start().await;
    let (job, token) = start_running_job(&harness).await;
    let long: String = (1..=1_500).map(|n| n.to_string() + "\n").collect();
    write(&harness, &token, &job, 0, format!("10%\r100%\n{long}").as_bytes()).await;
    let output = harness.run(&["jobs", "logs", &job, "--timestamps"]).await.expect_success();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 1_501);
    assert!(lines[0].ends_with("Z 100%") && lines[1_500].ends_with("Z 1500"), "{}", lines[0]);
    assert_eq!(lines[0].find('T'), Some("2024-01-15".len()), "{}", lines[0]);
    harness.run(&["jobs", "logs", &job, "--timestamps", "--follow"]).await.expect_failure(2, "--follow");
}

#[tokio::test]
async fn logs_of_jobs_are_searched() {
    let harness = CliHarness::start().await;
    let (job, token) = start_running_job(&harness).await;
    write(&harness, &token, &job, 0, b"start\n\x1b[31mCUDA out of memory\x1b[0m\n").await;
    let output = harness.run(&["jobs", "logs", "--search", "out of memory"]).await.expect_success();
    assert!(output.starts_with(&format!("{job} digits")), "{output}");
    assert!(output.ends_with("(attempt 1)\n       2: CUDA out of memory\n"), "{output}");
    assert_eq!(harness.run(&["jobs", "logs", "--search", "OUT OF", "-q"]).await.expect_success(), "");
    assert_eq!(harness.run(&["jobs", "logs", "--search", "of", "config:digits", "-q"]).await.single_line(), job);
    assert_eq!(harness.run(&["jobs", "logs", "--search", "of", "config:flux", "-q"]).await.expect_success(), "");
    harness.run(&["jobs", "logs"]).await.expect_failure(2, "<JOB>");
}

#[tokio::test]
async fn full_log_is_printed() {
    let harness = CliHarness::start().await;
    let (job, token) = start_running_job(&harness).await;
    let long = (0..200_000).map(|n| format!("{n} é\n")).collect::<Vec<_>>().concat();
    for (index, chunk) in long.as_bytes().chunks(900_000).enumerate() {
        write(&harness, &token, &job, index * 900_000, chunk).await;
    }
    assert!(harness.run(&["jobs", "logs", &job]).await.expect_success() == long, "every byte, once");
    let document = harness.run(&["jobs", "logs", &job, "--attempt", "1", "--json"]).await.json();
    assert_eq!((&document["offset"], &document["size"]), (&json!(0), &json!(long.len())));
    assert!(document["text"] == long);
    harness.run(&["jobs", "logs", &job, "--attempt", "2"]).await.expect_failure(1, "(attempt_not_found)");
    harness.run(&["jobs", "logs", "j_none", "-f"]).await.expect_failure(1, "(job_not_found)");
}

#[tokio::test]
async fn followed_log_survives_disconnects_and_ends_with_the_job() {
    let harness = CliHarness::start().await;
    let (job, token) = start_running_job(&harness).await;
    let mut relay = TcpRelay::start(harness.address).await;
    let relayed_client = client(relay.address, Some(ADMIN));
    let (shown, messages) = (SharedBuffer::default(), SharedBuffer::default());
    let (mut out, mut err) = (shown.clone(), messages.clone());
    let args = ["jobs", "logs", &job, "-f"];
    let follow = harness.run_into(&relayed_client, &args, &[], &mut out, &mut err);
    let script = async {
        write(&harness, &token, &job, 0, b"one\n").await;
        shown.wait_for("one\n").await;
        relay.cut().await;
        messages.wait_for("; retrying --").await;
        write(&harness, &token, &job, 4, b"two\n").await;
        relay.listen().await;
        shown.wait_for("two\n").await;
        relay.cut().await;
        write(&harness, &token, &job, 8, b"three\n").await;
        let completed = json!({"status": "completed", "attempt": 1, "exit_code": 0});
        harness.server.report_status(&token, &job, completed).await.expect_status(200);
        relay.listen().await;
    };
    let (result, ()) = tokio::join!(follow, script);
    result.expect("the job completed");
    assert_eq!(shown.text(), "one\ntwo\nthree\n");
    assert!(messages.text().contains("completed --"), "{}", messages.text());
}

#[tokio::test]
async fn exit_code_reflects_the_job_status() {
    let harness = CliHarness::start().await;
    let (job, token) = start_running_job(&harness).await;
    write(&harness, &token, &job, 0, b"before\n").await;
    let failed = json!({"status": "failed", "attempt": 1, "exit_code": 3, "error": "out of memory"});
    harness.server.report_status(&token, &job, failed).await.expect_status(200);
    let followed = harness.run(&["jobs", "logs", &job, "--follow"]).await;
    assert_eq!((followed.code, followed.out.as_str()), (1, "before\n"));
    assert!(followed.err.contains("failed: ") && followed.err.contains("out of memory"), "{}", followed.err);
    let json_output = harness.run(&["jobs", "logs", &job, "--follow", "--json"]).await;
    let chunk: Value = serde_json::from_str(json_output.out.trim_end()).expect("one document to a line");
    assert_eq!((json_output.code, &chunk["text"], &chunk["next_offset"]), (1, &json!("before\n"), &json!(7)));
    let quiet = harness.run(&["jobs", "logs", &job, "--follow", "--quiet"]).await;
    assert!(quiet.out == "before\n" && quiet.err.is_empty(), "{quiet:?}");
}

#[tokio::test]
async fn job_is_followed_from_submit_to_end() {
    let harness = CliHarness::start().await;
    harness.server.put_config("digits").await;
    let shown = SharedBuffer::default();
    let (mut out, mut err) = (shown.clone(), SharedBuffer::default());
    let args = ["jobs", "submit", "digits", "--follow"];
    let follow = harness.run_into(&harness.client, &args, &[], &mut out, &mut err);
    let script = async {
        // The job is queued before a worker connects.
        let (_, key, mut events) = harness.server.connect_worker("gpu-1").await;
        let offer = events.next_offer().await;
        let (job, token) = (offer.job_id.to_string(), Actor::Job(offer.upload_token));
        harness.server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        write(&harness, &token, &job, 0, b"hello\n").await;
        shown.wait_for("hello\n").await;
        harness.server.post(&Actor::Admin, &format!("/api/queue/{job}/cancel"), json!({})).await.expect_status(200);
        harness
            .server
            .report_status(&token, &job, json!({"status": "cancelled", "attempt": 1}))
            .await
            .expect_status(200);
    };
    let (result, ()) = tokio::join!(follow, script);
    assert_eq!(result.expect_err("it was cancelled").code(), 1);
    assert_eq!(shown.text(), "hello\n");
}
