//! Of a job that keeps the last checkpoint, those before it go: from the list, from the disk, and from nobody else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::store::retention::Files;

impl Story {
    /// A job that runs, of which these checkpoints are kept.
    async fn keeping(policy: &str) -> Self {
        let server = Server::start().await;
        server.config("digits").await;
        let (_, key, events) = server.online("gpu-1").await;
        let body = json!({"config_name": "digits", "checkpoints": policy});
        server.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
        Self { server, key, events, job: String::new(), attempt: 0, token: By::Nobody }.next().await
    }

    /// The paths that the job's page lists.
    async fn listed(&self) -> Vec<String> {
        let answer = self.server.get(&By::Admin, &format!("/api/queue/{}/artifacts", self.job)).await.ok(200);
        let files = answer["artifacts"].as_array().expect("a list").clone();
        files.iter().map(|file| file["path"].as_str().expect("text").to_owned()).collect()
    }

    fn on_disk(&self, path: &str) -> PathBuf {
        self.server.directory.path().join("artifacts").join(&self.job).join(path)
    }

    async fn marked(&self) -> Vec<Files> {
        let marked = self.server.app.core.read().await.expect("a reader").marked(99).await.expect("readable");
        marked.into_iter().map(|(_, files)| files).collect()
    }
}

async fn gone(path: &Path) {
    let gone = async {
        while path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap_or_else(|_| panic!("{} stays", path.display()));
}

fn both(name: &str) -> Vec<String> {
    ["model.bin", "sub/state.json"].map(|file| format!("{name}/{file}")).to_vec()
}

#[tokio::test]
async fn a_newer_one_that_is_whole_takes_the_place_of_those_before() {
    let story = Story::begin().await;
    story.save(900, "nine hundred").await;
    story.send("checkpoint-950/model.bin", "its sending broke off").await;
    story.send("model.bin", "no checkpoint").await;
    story.send("checkpoint-1000/model.bin", "a thousand").await;
    assert!(story.on_disk("1/checkpoint-900/model.bin").exists(), "the newer one is not whole yet");
    story.save(1000, "a thousand").await;
    let left = [both("checkpoint-1000"), vec!["model.bin".to_owned()]].concat();
    assert_eq!(story.listed().await, left);
    for path in ["1/checkpoint-900", "1/checkpoint-950"] {
        gone(&story.on_disk(path)).await;
    }
    assert!(story.on_disk("1/checkpoint-1000/sub/state.json").exists() && story.on_disk("1/model.bin").exists());
    let url = format!("/api/queue/{}/artifacts/checkpoint-900/model.bin", story.job);
    story.server.get(&By::Admin, &url).await.problem(404, "artifact_not_found");
    // That it is said twice changes nothing.
    story.save(1000, "a thousand").await;
    assert_eq!(story.listed().await, left);
}

#[tokio::test]
async fn what_an_earlier_attempt_left_goes_once_a_later_one_is_further() {
    let story = Story::begin().await;
    story.save(1000, "a thousand").await;
    let story = story.again().await;
    story.save(950, "a step back").await;
    assert_eq!(story.listed().await, [both("checkpoint-950"), both("checkpoint-1000")].concat());
    let story = story.again().await;
    assert_eq!(story.earlier().await["name"], "checkpoint-1000", "from there somebody goes on");
    assert_eq!(story.file("checkpoint-1000/model.bin", "").await.text(), "a thousand");
    story.save(1100, "further").await;
    assert_eq!(story.listed().await, both("checkpoint-1100"));
    for path in ["1", "2"] {
        gone(&story.on_disk(path)).await;
    }
}

#[tokio::test]
async fn what_another_job_has_stays_with_it() {
    let story = Story::begin().await;
    story.save(5, "five").await;
    story.report("failed").await;
    let first = story.on_disk("1/checkpoint-5/model.bin");
    let story = story.retried(&By::Admin).await;
    story.save(9, "nine").await;
    story.server.app.core.expire_jobs().await.expect("a disk");
    assert!(first.exists() && story.on_disk("1/checkpoint-9/model.bin").exists());
}

#[tokio::test]
async fn where_all_are_kept_none_goes() {
    let story = Story::keeping("all").await;
    story.save(5, "five").await;
    story.save(9, "nine").await;
    assert_eq!(story.listed().await, [both("checkpoint-5"), both("checkpoint-9")].concat());
    assert_eq!(story.marked().await, []);
    assert!(story.on_disk("1/checkpoint-5/model.bin").exists());
}

#[tokio::test]
async fn who_is_just_reading_a_file_gets_it_whole() {
    let story = Story::begin().await;
    story.save(5, "0123456789").await;
    let url = format!("/api/queue/{}/artifacts/checkpoint-5/model.bin", story.job);
    let reads = story.server.open(&By::Admin, "GET", &url, "").await;
    story.save(9, "nine").await;
    gone(&story.on_disk("1/checkpoint-5")).await;
    assert_eq!(read(reads).await.text(), "0123456789");
}

#[tokio::test]
async fn what_could_not_be_removed_is_removed_later() {
    let story = Story::begin().await;
    story.save(5, "five").await;
    let file = story.on_disk("1/checkpoint-5/model.bin");
    std::fs::remove_file(&file).expect("there");
    std::fs::create_dir_all(file.join("in the way")).expect("a directory");
    story.save(9, "nine").await;
    let refused = story.server.app.core.expire_jobs().await;
    assert!(refused.is_err(), "it is no file: {refused:?}");
    assert_eq!(story.listed().await, both("checkpoint-9"), "but nobody is told of it any more");
    assert!(!story.marked().await.is_empty());
    std::fs::remove_dir_all(&file).expect("there");
    std::fs::write(&file, "as if the server had ended before").expect("written");
    story.server.app.core.expire_jobs().await.expect("nothing is in the way now");
    assert_eq!((file.exists(), story.marked().await), (false, vec![]));
}
