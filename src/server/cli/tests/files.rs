//! `simpletuner jobs files` and `jobs download`

use std::fs;
use std::path::Path;

use serde_json::json;

use super::harness::CliHarness;
use crate::tests::harness::Actor;

/// Path, kind and content.
pub const FILES: [(&str, &str, &str); 4] = [
    ("lora.safetensors", "final", "weights"),
    ("notes/a.txt", "other", "one"),
    ("notes-2/b.txt", "other", "two"),
    ("validation_images/a%20b.png", "sample", "picture"),
];

/// Returns a completed job with these files.
pub async fn completed_job(harness: &CliHarness, files: &[(&str, &str, &str)]) -> String {
    harness.server.put_config("digits").await;
    let (_, key, mut events) = harness.server.connect_worker("gpu-1").await;
    let job = harness.server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    harness.server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    for (path, kind, content) in files {
        let path = format!("/api/workers/job/{job}/artifacts/{path}?attempt=1&kind={kind}");
        harness.server.call(&token, "PUT", &path, (*content).to_owned()).await.expect_status(200);
    }
    harness.server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    job
}

fn content(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("written")
}

#[tokio::test]
async fn weights_and_other_files_are_downloaded() {
    let harness = CliHarness::start().await;
    let job = completed_job(&harness, &FILES).await;
    let job = job.as_str();
    let list = harness.run(&["jobs", "files", job]).await.expect_success();
    let table = "\
FILE                       KIND    SIZE  ATTEMPT
lora.safetensors           final   7 B   1
notes-2/b.txt              other   3 B   1
notes/a.txt                other   3 B   1
validation_images/a b.png  sample  7 B   1
";
    assert_eq!(list, table);
    assert_eq!(harness.run(&["jobs", "files", job, "-q"]).await.expect_success().lines().count(), 4);
    let document = harness.run(&["jobs", "files", job, "--json"]).await.json();
    assert_eq!(document["artifacts"][0]["size_bytes"], 7);

    let home = tempfile::tempdir().expect("a directory");
    let to = home.path().join("out");
    let download_path = |path: &str| to.join(path);
    let directory = to.to_str().expect("text");
    let weights = harness.run(&["jobs", "download", job, "--to", directory]).await;
    assert!(weights.err.contains("Downloaded lora.safetensors (7 B)."), "{}", weights.err);
    assert_eq!(Path::new(&weights.single_line()), download_path("lora.safetensors"));
    assert_eq!(content(download_path("lora.safetensors")), "weights");
    assert_eq!(fs::read_dir(&to).expect("a directory").count(), 1, "the weights only, under their name");

    let more = ["jobs", "download", job, "notes/", "validation_images/a b.png", "--to", directory, "-q"];
    assert_eq!(harness.run(&more).await.expect_success().lines().count(), 2);
    assert_eq!(content(download_path("notes/a.txt")), "one");
    assert_eq!(content(download_path("validation_images/a b.png")), "picture");
    assert!(!download_path("notes-2").exists(), "another directory");

    fs::write(download_path("lora.safetensors"), "older").expect("written");
    let again = ["jobs", "download", job, "--to", directory];
    harness.run(&again).await.expect_failure(2, "add --yes");
    assert_eq!(content(download_path("lora.safetensors")), "older");
    let document = harness.run(&[&again[..], &["--yes", "--json"]].concat()).await.json();
    assert_eq!(document["artifacts"][0]["path"], "lora.safetensors");
    assert_eq!(content(download_path("lora.safetensors")), "weights");
}

#[tokio::test]
async fn interrupted_download_continues_with_the_missing_files() {
    let harness = CliHarness::start().await;
    let job = completed_job(&harness, &FILES).await;
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().to_str().expect("text");
    let download = ["jobs", "download", &job, "lora.safetensors", "notes", "--to", directory];
    fs::write(home.path().join("lora.safetensors"), "weights").expect("written");
    fs::create_dir(home.path().join("notes")).expect("created");
    fs::write(home.path().join("notes/a.txt.part"), "of another version").expect("written");
    let again = harness.run(&download).await;
    assert!(again.err.contains("lora.safetensors is already there."), "{}", again.err);
    assert!(again.err.contains("Downloaded notes/a.txt (3 B)."), "{}", again.err);
    assert_eq!(again.expect_success().lines().count(), 2, "the paths of both");
    assert_eq!(content(home.path().join("notes/a.txt")), "one");
    assert!(!home.path().join("notes/a.txt.part").exists());
}

#[tokio::test]
async fn download_without_a_result_says_why() {
    let harness = CliHarness::start().await;
    let job = completed_job(&harness, &FILES[1..]).await;
    let job = job.as_str();
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().to_str().expect("text");
    let download =
        async |more: &[&str]| harness.run(&[&["jobs", "download", job, "--to", directory], more].concat()).await;
    let hint = format!("`simpletuner jobs files {job}` shows what it has");
    download(&[]).await.expect_failure(1, &format!("{job} has no weights; {hint}"));
    download(&["notes/a.txt", "note"]).await.expect_failure(1, &format!("{job} has no file \"note\"; {hint}"));
    harness.run(&["jobs", "download", "j_none"]).await.expect_failure(1, "(job_not_found)");
    fs::write(home.path().join("notes"), "a file in its place").expect("written");
    download(&["notes/a.txt"]).await.expect_failure(78, "cannot write");

    // Of the same length, so that only the digest differs.
    fs::remove_file(home.path().join("notes")).expect("removed");
    fs::write(find_stored_file(harness.server.directory.path(), "two"), "off").expect("written");
    download(&["notes-2"]).await.expect_failure(75, "arrived changed");
    assert_eq!(
        fs::read_dir(home.path().join("notes-2")).expect("a directory").count(),
        0,
        "the partial file is deleted"
    );
}

/// Returns the file below this directory that has this content.
fn find_stored_file(directory: &Path, text: &str) -> std::path::PathBuf {
    let mut directories = vec![directory.join("artifacts")];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if fs::read_to_string(&path).is_ok_and(|found| found == text) {
                return path;
            }
        }
    }
    panic!("no file has the content {text:?}")
}
