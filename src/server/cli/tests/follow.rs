//! `simpletuner jobs logs`

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::desk::{Desk, Relay, client};
use crate::tests::harness::{ADMIN, By};

/// What a command has printed so far.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shown {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }

    async fn until(&self, what: &str) {
        let shown = async {
            while !self.text().contains(what) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), shown)
            .await
            .unwrap_or_else(|_| panic!("{what:?}: {:?}", self.text()));
    }
}

/// A job that runs, and who runs it.
async fn running(desk: &Desk) -> (String, By) {
    desk.server.config("digits").await;
    let (_, key, mut events) = desk.server.online("gpu-1").await;
    let job = desk.server.submit("digits").await;
    let offer = events.offer().await;
    let by = By::Job(offer.upload_token);
    desk.server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    (job, by)
}

async fn write(desk: &Desk, by: &By, job: &str, offset: usize, text: &[u8]) {
    let path = format!("/api/workers/job/{job}/logs?attempt=1&offset={offset}");
    desk.server.call(by, "PUT", &path, text.to_vec()).await.ok(200);
}

#[tokio::test]
async fn a_log_is_printed_whole() {
    let desk = Desk::open().await;
    let (job, by) = running(&desk).await;
    let long = (0..200_000).map(|n| format!("{n} é\n")).collect::<Vec<_>>().concat();
    for (at, piece) in long.as_bytes().chunks(900_000).enumerate() {
        write(&desk, &by, &job, at * 900_000, piece).await;
    }
    assert!(desk.run(&["jobs", "logs", &job]).await.ok() == long, "every byte, once");
    let document = desk.run(&["jobs", "logs", &job, "--attempt", "1", "--json"]).await.json();
    assert_eq!((&document["offset"], &document["size"]), (&json!(0), &json!(long.len())));
    assert!(document["text"] == long);
    desk.run(&["jobs", "logs", &job, "--attempt", "2"]).await.refused(1, "(attempt_not_found)");
    desk.run(&["jobs", "logs", "j_none", "-f"]).await.refused(1, "(job_not_found)");
}

#[tokio::test]
async fn a_followed_log_survives_a_broken_connection_and_ends_with_the_job() {
    let desk = Desk::open().await;
    let (job, by) = running(&desk).await;
    let mut relay = Relay::before(desk.address).await;
    let through = client(relay.address, Some(ADMIN));
    let (shown, said) = (Shown::default(), Shown::default());
    let (mut out, mut err) = (shown.clone(), said.clone());
    let args = ["jobs", "logs", &job, "-f"];
    let follow = desk.print(&through, &args, &[], &mut out, &mut err);
    let script = async {
        write(&desk, &by, &job, 0, b"one\n").await;
        shown.until("one\n").await;
        relay.cut().await;
        said.until("going on when it answers").await;
        write(&desk, &by, &job, 4, b"two\n").await;
        relay.listen().await;
        shown.until("two\n").await;
        relay.cut().await;
        write(&desk, &by, &job, 8, b"three\n").await;
        let done = json!({"status": "completed", "attempt": 1, "exit_code": 0});
        desk.server.report(&by, &job, done).await.ok(200);
        relay.listen().await;
    };
    let (ended, ()) = tokio::join!(follow, script);
    ended.expect("the job completed");
    assert_eq!(shown.text(), "one\ntwo\nthree\n");
    assert!(said.text().contains("completed --"), "{}", said.text());
}

#[tokio::test]
async fn the_exit_code_says_how_a_job_ended() {
    let desk = Desk::open().await;
    let (job, by) = running(&desk).await;
    write(&desk, &by, &job, 0, b"before\n").await;
    let failed = json!({"status": "failed", "attempt": 1, "exit_code": 3, "error": "out of memory"});
    desk.server.report(&by, &job, failed).await.ok(200);
    let followed = desk.run(&["jobs", "logs", &job, "--follow"]).await;
    assert_eq!((followed.code, followed.out.as_str()), (1, "before\n"));
    assert!(followed.err.contains("failed: ") && followed.err.contains("out of memory"), "{}", followed.err);
    let pieces = desk.run(&["jobs", "logs", &job, "--follow", "--json"]).await;
    let piece: Value = serde_json::from_str(pieces.out.trim_end()).expect("one document to a line");
    assert_eq!((pieces.code, &piece["text"], &piece["next_offset"]), (1, &json!("before\n"), &json!(7)));
    let quiet = desk.run(&["jobs", "logs", &job, "--follow", "--quiet"]).await;
    assert!(quiet.out == "before\n" && quiet.err.is_empty(), "{quiet:?}");
}

#[tokio::test]
async fn a_job_is_submitted_and_followed_from_the_queue_to_its_end() {
    let desk = Desk::open().await;
    desk.server.config("digits").await;
    let shown = Shown::default();
    let (mut out, mut err) = (shown.clone(), Shown::default());
    let args = ["jobs", "submit", "digits", "--follow"];
    let follow = desk.print(&desk.client, &args, &[], &mut out, &mut err);
    let script = async {
        // Nobody is there to take it at first.
        let (_, key, mut events) = desk.server.online("gpu-1").await;
        let offer = events.offer().await;
        let (job, by) = (offer.job_id.to_string(), By::Job(offer.upload_token));
        desk.server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
        write(&desk, &by, &job, 0, b"hello\n").await;
        shown.until("hello\n").await;
        desk.server.post(&By::Admin, &format!("/api/queue/{job}/cancel"), json!({})).await.ok(200);
        desk.server.report(&by, &job, json!({"status": "cancelled", "attempt": 1})).await.ok(200);
    };
    let (ended, ()) = tokio::join!(follow, script);
    assert_eq!(ended.expect_err("it was cancelled").code(), 1);
    assert_eq!(shown.text(), "hello\n");
}
