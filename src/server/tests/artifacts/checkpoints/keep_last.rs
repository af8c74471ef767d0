//! With the policy `last`, older checkpoints of the job are removed from the list and the disk; those of other jobs
//! stay.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::store::jobs::retention::RemovedFiles;

impl CheckpointScenario {
    /// Starts a job with this checkpoint policy.
    async fn start_with_policy(policy: &str) -> Self {
        let server = TestServer::start().await;
        server.put_config("digits").await;
        let (worker, key, events) = server.connect_worker("gpu-1").await;
        let body = json!({"config_name": "digits", "checkpoints": policy});
        server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
        Self { server, worker, key, events, job: String::new(), attempt: 0, token: Actor::Unauthenticated }
            .start_next_attempt()
            .await
    }

    /// Returns the paths that the job's page lists.
    async fn listed_paths(&self) -> Vec<String> {
        let response =
            self.server.get(&Actor::Admin, &format!("/api/queue/{}/artifacts", self.job)).await.expect_status(200);
        let files = response["artifacts"].as_array().expect("a list").clone();
        files.iter().map(|file| file["path"].as_str().expect("text").to_owned()).collect()
    }

    fn stored_path(&self, path: &str) -> PathBuf {
        self.server.directory.path().join("artifacts").join(&self.job).join(path)
    }

    async fn marked_files(&self) -> Vec<RemovedFiles> {
        let marked = self
            .server
            .app
            .services
            .context
            .read()
            .await
            .expect("a reader")
            .marked_files(None, 99)
            .await
            .expect("readable");
        marked.into_iter().map(|(_, files)| files).collect()
    }
}

/// It can no longer be removed as a file.
fn replace_by_directory(file: &Path) {
    std::fs::remove_file(file).expect("it exists");
    std::fs::create_dir_all(file.join("in the way")).expect("a directory");
}

async fn wait_until_removed(path: &Path) {
    let removed = async {
        while path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), removed).await.unwrap_or_else(|_| panic!("{} stays", path.display()));
}

fn checkpoint_files(name: &str) -> Vec<String> {
    ["model.bin", "sub/state.json"].map(|file| format!("{name}/{file}")).to_vec()
}

#[tokio::test]
async fn newer_complete_checkpoint_replaces_older_ones() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(900, "nine hundred").await;
    scenario.send_file("checkpoint-950/model.bin", "incomplete").await;
    scenario.send_file("model.bin", "no checkpoint").await;
    scenario.send_file("checkpoint-1000/model.bin", "a thousand").await;
    assert!(scenario.stored_path("1/checkpoint-900/model.bin").exists(), "the newer checkpoint is not complete yet");
    scenario.save_checkpoint(1000, "a thousand").await;
    let expected = [checkpoint_files("checkpoint-1000"), vec!["model.bin".to_owned()]].concat();
    assert_eq!(scenario.listed_paths().await, expected);
    for path in ["1/checkpoint-900", "1/checkpoint-950"] {
        wait_until_removed(&scenario.stored_path(path)).await;
    }
    assert!(
        scenario.stored_path("1/checkpoint-1000/sub/state.json").exists()
            && scenario.stored_path("1/model.bin").exists()
    );
    let url = format!("/api/queue/{}/artifacts/checkpoint-900/model.bin", scenario.job);
    scenario.server.get(&Actor::Admin, &url).await.expect_problem(404, "artifact_not_found");
    // A repeated report changes nothing.
    scenario.save_checkpoint(1000, "a thousand").await;
    assert_eq!(scenario.listed_paths().await, expected);
}

#[tokio::test]
async fn checkpoints_of_earlier_attempts_are_removed_by_later_steps() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(1000, "a thousand").await;
    let scenario = scenario.lose_and_restart().await;
    scenario.save_checkpoint(950, "a step back").await;
    assert_eq!(
        scenario.listed_paths().await,
        [checkpoint_files("checkpoint-950"), checkpoint_files("checkpoint-1000")].concat()
    );
    let scenario = scenario.lose_and_restart().await;
    assert_eq!(scenario.resume_checkpoint().await["name"], "checkpoint-1000", "the job resumes from it");
    assert_eq!(scenario.resume_file("checkpoint-1000/model.bin", "").await.text(), "a thousand");
    scenario.save_checkpoint(1100, "further").await;
    assert_eq!(scenario.listed_paths().await, checkpoint_files("checkpoint-1100"));
    for path in ["1", "2"] {
        wait_until_removed(&scenario.stored_path(path)).await;
    }
}

#[tokio::test]
async fn checkpoints_of_other_jobs_stay() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(5, "five").await;
    scenario.report("failed").await;
    let first = scenario.stored_path("1/checkpoint-5/model.bin");
    let scenario = scenario.retry(&Actor::Admin).await;
    scenario.save_checkpoint(9, "nine").await;
    scenario.server.app.services.jobs.prune_jobs().await.expect("a disk");
    assert!(first.exists() && scenario.stored_path("1/checkpoint-9/model.bin").exists());
}

#[tokio::test]
async fn policy_all_removes_no_checkpoint() {
    let scenario = CheckpointScenario::start_with_policy("all").await;
    scenario.save_checkpoint(5, "five").await;
    scenario.save_checkpoint(9, "nine").await;
    assert_eq!(
        scenario.listed_paths().await,
        [checkpoint_files("checkpoint-5"), checkpoint_files("checkpoint-9")].concat()
    );
    assert_eq!(scenario.marked_files().await, []);
    assert!(scenario.stored_path("1/checkpoint-5/model.bin").exists());
}

#[tokio::test]
async fn removed_file_can_be_read_to_its_end() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(5, "0123456789").await;
    let url = format!("/api/queue/{}/artifacts/checkpoint-5/model.bin", scenario.job);
    let response = scenario.server.open(&Actor::Admin, "GET", &url, "").await;
    scenario.save_checkpoint(9, "nine").await;
    wait_until_removed(&scenario.stored_path("1/checkpoint-5")).await;
    assert_eq!(read_response(response).await.text(), "0123456789");
}

#[tokio::test]
async fn file_that_cannot_be_removed_stops_no_other_removal() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(5, "five").await;
    let in_the_way = scenario.stored_path("1/checkpoint-5/model.bin");
    replace_by_directory(&in_the_way);
    scenario.save_checkpoint(9, "nine").await;
    scenario.save_checkpoint(12, "twelve").await;
    let removed = scenario.stored_path("1/checkpoint-9/model.bin");
    wait_until_removed(&removed).await;
    assert!(in_the_way.exists() && scenario.server.app.services.jobs.prune_jobs().await.is_err());
    assert!(
        scenario
            .marked_files()
            .await
            .iter()
            .all(|files| { files.artifact().is_some_and(|(_, path)| path.starts_with("checkpoint-5/")) })
    );
}

#[tokio::test]
async fn failed_removal_is_repeated_later() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(5, "five").await;
    let file = scenario.stored_path("1/checkpoint-5/model.bin");
    replace_by_directory(&file);
    scenario.save_checkpoint(9, "nine").await;
    let rejected = scenario.server.app.services.jobs.prune_jobs().await;
    assert!(rejected.is_err(), "a directory is in the place of the file: {rejected:?}");
    assert_eq!(
        scenario.listed_paths().await,
        checkpoint_files("checkpoint-9"),
        "no attempt gets the removed checkpoint"
    );
    assert!(!scenario.marked_files().await.is_empty());
    std::fs::remove_dir_all(&file).expect("it exists");
    std::fs::write(&file, "as if the server had ended before").expect("written");
    scenario.server.app.services.jobs.prune_jobs().await.expect("the file can be removed");
    assert_eq!((file.exists(), scenario.marked_files().await), (false, vec![]));
}
