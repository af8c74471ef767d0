//! Parts of files, and archives of several.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderName, Request, StatusCode, header};
use futures_util::StreamExt;
use http_body_util::BodyExt;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::tests::harness::{ADMIN, Actor, TestResponse, TestServer, read_response};
use crate::tokens::hex;

/// Path, kind and content.
const FILES: [(&str, &str, &str); 5] = [
    ("lora/a.safetensors", "final", "first weights"),
    ("lora/b.safetensors", "final", "second weights"),
    ("notes.txt", "other", ""),
    ("samples/a%20b.png", "sample", "picture"),
    ("samples-2/c.png", "sample", "another"),
];

struct Scenario {
    server: TestServer,
    job: String,
}

impl Scenario {
    /// Starts a server with a job that has uploaded these files.
    async fn start() -> Self {
        let server = TestServer::start().await;
        server.put_config("digits").await;
        let (_, key, mut events) = server.connect_worker("gpu-1").await;
        let job = server.submit("digits").await;
        let token = Actor::Job(events.next_offer().await.upload_token);
        server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        for (path, kind, content) in FILES {
            let path = format!("/api/workers/job/{job}/artifacts/{path}?attempt=1&kind={kind}");
            server.call(&token, "PUT", &path, content).await.expect_status(200);
        }
        Self { server, job }
    }

    async fn open(&self, path: &str, headers: &[(HeaderName, &str)]) -> axum::response::Response {
        let request = Request::builder().uri(format!("/api/queue/{}/{path}", self.job)).header("x-api-key", ADMIN);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        self.server.send(request.body(Body::empty()).expect("a request")).await
    }

    async fn get(&self, path: &str, headers: &[(HeaderName, &str)]) -> TestResponse {
        read_response(self.open(path, headers).await).await
    }

    fn stored_file(&self, path: &str) -> PathBuf {
        self.server.directory.path().join("artifacts").join(&self.job).join("1").join(path)
    }
}

#[tokio::test]
async fn parts_of_a_file_can_be_requested() {
    let scenario = Scenario::start().await;
    let file = "artifacts/lora/a.safetensors";
    let full = scenario.get(file, &[]).await;
    assert_eq!((full.status, full.text().as_str()), (StatusCode::OK, "first weights"));
    assert_eq!(full.headers[header::ACCEPT_RANGES], "bytes");
    let etag = format!("\"{}\"", hex(&Sha256::digest("first weights")));
    for (range, text, content_range) in [
        ("bytes=0-4", "first", "bytes 0-4/13"),
        ("bytes=6-", "weights", "bytes 6-12/13"),
        ("bytes=-3", "hts", "bytes 10-12/13"),
        ("bytes=12-99", "s", "bytes 12-12/13"),
    ] {
        let part = scenario.get(file, &[(header::RANGE, range), (header::IF_RANGE, &etag)]).await;
        assert_eq!((part.status, part.text().as_str()), (StatusCode::PARTIAL_CONTENT, text), "{range}");
        assert_eq!(part.headers[header::CONTENT_RANGE], content_range);
        assert_eq!(part.headers[header::CONTENT_LENGTH], text.len().to_string());
        assert_eq!(part.headers[header::ETAG], etag);
        assert_eq!(part.headers[header::CONTENT_TYPE], "application/octet-stream");
    }
    for (range, if_range) in [
        ("bytes=0-1,3-4", etag.as_str()),
        ("lines=1-2", &etag),
        ("bytes=4-2", &etag),
        ("bytes=2-4", "\"of an earlier version\""),
        ("bytes=2-4", &format!("W/{etag}")),
        ("bytes=99-", "\"of an earlier version\""),
    ] {
        let full = scenario.get(file, &[(header::RANGE, range), (header::IF_RANGE, if_range)]).await;
        assert_eq!((full.status, full.text().as_str()), (StatusCode::OK, "first weights"), "{range} {if_range}");
        assert!(!full.headers.contains_key(header::CONTENT_RANGE));
    }
    for range in ["bytes=13-", "bytes=99-100", "bytes=-0"] {
        let outside = scenario.get(file, &[(header::RANGE, range)]).await;
        assert_eq!(outside.headers[header::CONTENT_RANGE], "bytes */13", "{range}");
        assert_eq!(outside.expect_problem(416, "range_not_satisfiable")["size"], 13);
    }
    let known = scenario.get(file, &[(header::IF_NONE_MATCH, &etag), (header::RANGE, "bytes=2-4")]).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    let empty = scenario.get("artifacts/notes.txt", &[(header::RANGE, "bytes=-5")]).await;
    assert_eq!((empty.status, empty.body.len()), (StatusCode::OK, 0));
    fs::remove_file(scenario.stored_file("notes.txt")).expect("removed");
    scenario.get("artifacts/notes.txt", &[]).await.expect_problem(503, "files_unavailable");
}

/// The names and contents of an archive, as Python reads them after it has checked the checksums.
fn unzip(archive: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), archive).expect("written");
    let program = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                   for i in z.infolist():\n    print(i.filename + ':', z.read(i).decode())";
    let output = Command::new("python3").args(["-c", program]).arg(file.path()).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn several_files_are_one_archive() {
    let scenario = Scenario::start().await;
    let weights = scenario.get("artifacts.zip?kind=final", &[]).await;
    assert_eq!(weights.status, StatusCode::OK);
    assert_eq!(weights.headers[header::CONTENT_TYPE], "application/zip");
    assert_eq!(weights.headers[header::CONTENT_DISPOSITION], "attachment; filename=\"digits-1-weights.zip\"");
    assert_eq!(weights.headers[header::CONTENT_LENGTH], weights.body.len().to_string());
    assert_eq!(unzip(&weights.body), "lora/a.safetensors: first weights\nlora/b.safetensors: second weights\n");
    let samples = scenario.get("artifacts.zip?path=samples/&path=notes.txt", &[]).await;
    assert_eq!(samples.headers[header::CONTENT_DISPOSITION], "attachment; filename=\"digits-1-files.zip\"");
    assert_eq!(unzip(&samples.body), "notes.txt: \nsamples/a b.png: picture\n");
    let both = scenario.get("artifacts.zip?path=lora/b.safetensors&path=samples&kind=sample", &[]).await;
    both.expect_problem(404, "artifact_not_found");
    assert_eq!(unzip(&scenario.get("artifacts.zip", &[]).await.body).lines().count(), FILES.len());
}

#[tokio::test]
async fn archive_without_files_is_a_problem() {
    let scenario = Scenario::start().await;
    let get = async |query: &str| scenario.get(&format!("artifacts.zip?{query}"), &[]).await;
    let problem = get("path=lora&path=sample").await.expect_problem(404, "artifact_not_found");
    assert_eq!(problem["detail"], "This job has no file \"sample\".");
    let problem = get("kind=checkpoint").await.expect_problem(404, "artifact_not_found");
    assert_eq!(problem["detail"], "This job has no files of this kind.");
    get("kind=weights").await.expect_problem(400, "invalid_query");
    let path = format!("/api/queue/{}/artifacts.zip", scenario.job);
    scenario.server.get(&Actor::Unauthenticated, &path).await.expect_problem(401, "not_authenticated");
    let other = scenario.server.restricted_token("ada").await;
    scenario.server.get(&other, &path).await.expect_problem(404, "job_not_found");
}

#[tokio::test]
async fn archive_with_a_missing_or_changed_file_does_not_end() {
    let scenario = Scenario::start().await;
    let second = scenario.stored_file("lora/b.safetensors");
    let read = async || {
        let response = scenario.open("artifacts.zip?kind=final", &[]).await;
        assert_eq!(response.status(), StatusCode::OK);
        let chunks: Vec<_> = StreamExt::collect(response.into_body().into_data_stream()).await;
        chunks.into_iter().map(|chunk| chunk.map(|bytes| bytes.len())).collect::<Result<Vec<_>, _>>()
    };
    assert!(read().await.is_ok());
    fs::write(&second, "shorter").expect("written");
    assert!(read().await.is_err());
    fs::remove_file(&second).expect("removed");
    assert!(read().await.is_err());
}

#[tokio::test]
async fn archive_is_no_longer_read_once_the_client_is_gone() {
    let scenario = Scenario::start().await;
    let file = fs::canonicalize(scenario.stored_file("lora/a.safetensors")).expect("a file");
    let is_open = || {
        let descriptors = fs::read_dir("/proc/self/fd").expect("descriptors");
        descriptors.flatten().any(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|target| target == file))
    };
    let mut body = scenario.open("artifacts.zip?kind=final", &[]).await.into_body();
    while !is_open() {
        body.frame().await.expect("a chunk").expect("bytes");
    }
    assert!(!body.is_end_stream());
    drop(body);
    while is_open() {
        tokio::task::yield_now().await;
    }
}
