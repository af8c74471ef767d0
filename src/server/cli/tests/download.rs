//! `simpletuner jobs download` over a bad connection, and as an archive

use std::collections::VecDeque;
use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use serde_json::json;
use tower::ServiceExt;

use super::files::{FILES, completed_job};
use super::harness::CliHarness;
use crate::tests::harness::{Actor, TestServer};

/// What happens to the downloads of files, and which ranges they have requested.
#[derive(Clone, Default)]
struct BadConnection {
    /// After how many bytes the next ones are cut; the others are not.
    cuts: Arc<Mutex<VecDeque<usize>>>,
    ranges: Arc<Mutex<Vec<String>>>,
    /// What happens on the server before the next download that continues.
    change: Arc<Mutex<Option<(Router, Request)>>>,
}

impl BadConnection {
    fn cut_at(&self, cuts: impl IntoIterator<Item = usize>) {
        *self.cuts.lock().expect("not poisoned") = cuts.into_iter().collect();
    }

    /// Returns the requested ranges since the last call.
    fn take_ranges(&self) -> Vec<String> {
        std::mem::take(&mut *self.ranges.lock().expect("not poisoned"))
    }
}

async fn cut(State(connection): State<BadConnection>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if !path.starts_with("/api/queue/") || !(path.contains("/artifacts/") || path.ends_with("/artifacts.zip")) {
        return next.run(request).await;
    }
    let range = request.headers().get("range").map_or("", |range| range.to_str().expect("text")).to_owned();
    let change = if range.is_empty() { None } else { connection.change.lock().expect("not poisoned").take() };
    connection.ranges.lock().expect("not poisoned").push(range);
    if let Some((router, change)) = change {
        assert!(router.oneshot(change).await.expect("a response").status().is_success());
    }
    let response = next.run(request).await;
    let Some(length) = connection.cuts.lock().expect("not poisoned").pop_front() else { return response };
    response.map(|body| {
        let first = body.into_data_stream().map(move |bytes| bytes.map(|bytes| bytes.slice(..length.min(bytes.len()))));
        let lost = stream::once(async {
            // What was sent before arrives.
            tokio::task::yield_now().await;
            Err::<Bytes, _>(axum::Error::new("cut"))
        });
        Body::from_stream(first.take(1).chain(lost))
    })
}

async fn start() -> (CliHarness, BadConnection) {
    let (connection, mut server) = (BadConnection::default(), TestServer::start().await);
    server.router = server.router.clone().layer(from_fn_with_state(connection.clone(), cut));
    (CliHarness::with_server(server).await, connection)
}

fn content() -> String {
    (0..1_000).map(|number| char::from(b'a' + u8::try_from(number % 26).expect("small"))).collect()
}

#[tokio::test]
async fn interrupted_download_continues_by_itself() {
    let (harness, connection) = start().await;
    let job = completed_job(&harness, &[("lora.safetensors", "final", &content())]).await;
    let home = tempfile::tempdir().expect("a directory");
    connection.cut_at([300, 0, 250]);
    let download = harness.run(&["jobs", "download", &job, "--to", home.path().to_str().expect("text")]).await;
    assert_eq!(connection.take_ranges(), ["", "bytes=300-", "bytes=300-", "bytes=550-"]);
    assert!(download.err.contains("lora.safetensors was interrupted at 300 B of 1,000 B ("), "{}", download.err);
    download.single_line();
    assert_eq!(fs::read_to_string(home.path().join("lora.safetensors")).expect("written"), content());
    assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 1);
}

#[tokio::test]
async fn download_that_gives_up_leaves_what_the_next_one_continues() {
    let (harness, connection) = start().await;
    let job = completed_job(&harness, &[("lora.safetensors", "final", &content())]).await;
    let home = tempfile::tempdir().expect("a directory");
    let download = ["jobs", "download", &job, "--to", home.path().to_str().expect("text")];
    connection.cut_at([100].into_iter().chain([0; 20]));
    let output = harness.run(&download).await;
    assert!(output.err.contains("at 100 B of 1,000 B"), "{}", output.err);
    output.expect_failure(75, "run this again to continue");
    assert_eq!(connection.take_ranges().len(), 7);
    assert_eq!(fs::read_to_string(home.path().join("lora.safetensors.part")).expect("a part"), content()[..100]);

    connection.cut_at([]);
    let output = harness.run(&download).await;
    assert!(output.err.contains("Continuing lora.safetensors at 100 B of 1,000 B."), "{}", output.err);
    output.single_line();
    assert_eq!(connection.take_ranges(), ["bytes=100-"]);
    assert_eq!(fs::read_to_string(home.path().join("lora.safetensors")).expect("written"), content());

    // Killed between its last byte and its end.
    fs::rename(home.path().join("lora.safetensors"), home.path().join("lora.safetensors.part")).expect("renamed");
    harness.run(&download).await.single_line();
    assert_eq!(connection.take_ranges(), [""; 0]);
    assert_eq!(fs::read_to_string(home.path().join("lora.safetensors")).expect("written"), content());
}

#[tokio::test]
async fn part_of_another_version_is_not_continued() {
    let (harness, connection) = start().await;
    let job = completed_job(&harness, &[("lora.safetensors", "final", &content())]).await;
    let home = tempfile::tempdir().expect("a directory");
    let part = home.path().join("lora.safetensors.part");
    let download = ["jobs", "download", &job, "--to", home.path().to_str().expect("text")];
    fs::write(&part, "of another version").expect("written");
    let output = harness.run(&download).await;
    assert!(output.err.contains("lora.safetensors has changed; it begins again."), "{}", output.err);
    output.single_line();
    assert_eq!(connection.take_ranges(), ["bytes=18-", ""]);
    assert_eq!(fs::read_to_string(home.path().join("lora.safetensors")).expect("written"), content());

    fs::remove_file(home.path().join("lora.safetensors")).expect("removed");
    fs::write(&part, content() + "longer").expect("written");
    harness.run(&download).await.single_line();
    assert_eq!(connection.take_ranges(), [""]);

    fs::remove_file(home.path().join("lora.safetensors")).expect("removed");
    let other = fs::File::create(&part).expect("created");
    other.lock().expect("locked");
    harness.run(&download).await.expect_failure(75, "another download writes");
}

#[tokio::test]
async fn file_that_changes_during_its_download_begins_again() {
    let (harness, connection) = start().await;
    harness.server.put_config("digits").await;
    let (_, key, mut events) = harness.server.connect_worker("gpu-1").await;
    let job = harness.server.submit("digits").await;
    let token = events.next_offer().await.upload_token;
    harness.server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let upload = format!("/api/workers/job/{job}/artifacts/lora.safetensors?attempt=1&kind=final");
    harness.server.call(&Actor::Job(token.clone()), "PUT", &upload, content()).await.expect_status(200);
    let change = axum::http::Request::builder().method("PUT").uri(&upload).header("x-upload-token", token);
    let change = change.body(Body::from("the second version")).expect("a request");
    *connection.change.lock().expect("not poisoned") = Some((harness.server.router.clone(), change));

    let home = tempfile::tempdir().expect("a directory");
    connection.cut_at([300]);
    let output = harness.run(&["jobs", "download", &job, "--to", home.path().to_str().expect("text"), "--json"]).await;
    assert_eq!(connection.take_ranges(), ["", "bytes=300-"]);
    assert_eq!(output.json()["artifacts"][0]["size_bytes"], 18);
    assert_eq!(fs::read_to_string(home.path().join("lora.safetensors")).expect("written"), "the second version");
}

#[tokio::test]
async fn files_are_downloaded_as_an_archive() {
    let (harness, connection) = start().await;
    let job = completed_job(&harness, &FILES).await;
    let home = tempfile::tempdir().expect("a directory");
    let (archive, path) = (home.path().join("a.zip"), home.path().join("a.zip"));
    let path = path.to_str().expect("text");
    let names = || {
        let list = Command::new("python3").args(["-m", "zipfile", "-l", path]).output().expect("python3");
        let list = String::from_utf8(list.stdout).expect("text");
        list.lines().skip(1).filter_map(|line| line.split("  ").next().map(str::to_owned)).collect::<Vec<_>>()
    };
    let output = harness.run(&["jobs", "download", "--zip", path, &job]).await;
    assert!(output.err.contains("a.zip ("), "{}", output.err);
    assert_eq!(output.single_line(), path);
    assert_eq!(names(), ["lora.safetensors"]);
    let download = ["jobs", "download", &job, "notes", "validation_images/", "--zip", path];
    harness.run(&download).await.expect_failure(2, "add --yes");
    harness.run(&[&download[..], &["--yes"]].concat()).await.single_line();
    assert_eq!(names(), ["notes/a.txt", "validation_images/a b.png"]);

    let (mut out, mut err) = (Vec::new(), Vec::new());
    let to_stdout = ["jobs", "download", &job, "notes", "validation_images/", "--zip", "-"];
    harness.run_into(&harness.client, &to_stdout, &[], &mut out, &mut err).await.expect("downloaded");
    assert_eq!((out, err), (fs::read(&archive).expect("written"), Vec::new()));

    fs::remove_file(&archive).expect("removed");
    harness.run(&["jobs", "download", &job, "none", "--zip", path]).await.expect_failure(1, "no file \"none\"");
    connection.cut_at([20]);
    harness.run(&download).await.expect_failure(75, "an archive cannot be continued");
    assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 0, "no part of it stays");
    let nowhere = home.path().join("none/a.zip");
    let nowhere = ["jobs", "download", &job, "--zip", nowhere.to_str().expect("text")];
    harness.run(&nowhere).await.expect_failure(78, "cannot write");
    let with_directory = ["jobs", "download", &job, "--zip", path, "--to", "out"];
    harness.run(&with_directory).await.expect_failure(2, "cannot be used with");
    let terminal = CliHarness { width: Some(80), ..harness };
    terminal.run(&to_stdout).await.expect_failure(2, "would be written to the terminal");
}
