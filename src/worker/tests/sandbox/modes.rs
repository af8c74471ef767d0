//! File modes that could give rights to processes outside the sandbox, and attacks on the user's other processes.

use std::io;

use serde_json::json;

use super::{WITH_OPEN_FILE, assert_all_held, run_trials, run_trials_with, trials_with_result};

const MODES: &str = include_str!("modes.py");
const OTHERS: &str = include_str!("others.py");

#[tokio::test]
async fn trainer_cannot_create_setuid_files() -> io::Result<()> {
    let lines = run_trials_with("none", MODES, &json!({"null": true}), &WITH_OPEN_FILE, &[]).await?;
    let held = trials_with_result(&lines, "held");
    // Only root can change root's files.
    let only_device_held = held.iter().all(|name| *name == "mode-of-null" && !nix::unistd::geteuid().is_root());
    assert!(only_device_held && trials_with_result(&lines, "out").len() + held.len() == 8, "{lines:#?}");
    assert_all_held(&run_trials("files", MODES).await?, 7);
    assert_all_held(&run_trials_with("full", MODES, &json!({"null": true}), &WITH_OPEN_FILE, &[]).await?, 8);
    Ok(())
}

/// A trainer needs these calls for its own threads, so they are allowed. Only namespaces protect other processes from
/// them.
const SUCCEEDING_TRIALS: [&str; 2] = ["renice", "pin-others"];

#[tokio::test]
async fn level_files_protects_other_processes_of_the_user() -> io::Result<()> {
    let lines = run_trials("files", OTHERS).await?;
    assert_eq!(
        (trials_with_result(&lines, "held"), trials_with_result(&lines, "out")),
        (vec!["kill", "limit-others", "read-others"], SUCCEEDING_TRIALS.to_vec())
    );
    Ok(())
}
