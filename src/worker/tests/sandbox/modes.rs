//! Modes and terminals that a trainer could leave to, or take from, processes outside, and processes of its own user there.

use std::io;

use serde_json::json;

use super::{WITH_A_FILE, assert_all_held, run_trials, run_trials_with, trials_with_result};

const MODES: &str = include_str!("modes.py");
const OTHERS: &str = include_str!("others.py");

#[tokio::test]
async fn trainer_cannot_create_setuid_files() -> io::Result<()> {
    let all = run_trials_with("none", MODES, &json!({"null": true}), &WITH_A_FILE, &[]).await?;
    let held = trials_with_result(&all, "held");
    // Only root changes what is root's.
    let but_the_device = held.iter().all(|name| *name == "mode-of-null" && !nix::unistd::geteuid().is_root());
    assert!(but_the_device && trials_with_result(&all, "out").len() + held.len() == 8, "{all:#?}");
    assert_all_held(&run_trials("files", MODES).await?, 7);
    assert_all_held(&run_trials_with("full", MODES, &json!({"null": true}), &WITH_A_FILE, &[]).await?, 8);
    Ok(())
}

/// Threads of its own are pinned by the same calls, so a trainer has them. Only namespaces keep others' processes from them.
const SLOWS_DOWN: [&str; 2] = ["renice", "pin-others"];

#[tokio::test]
async fn level_files_protects_other_processes_of_the_user() -> io::Result<()> {
    let all = run_trials("files", OTHERS).await?;
    assert_eq!(
        (trials_with_result(&all, "held"), trials_with_result(&all, "out")),
        (vec!["kill", "limit-others", "read-others"], SLOWS_DOWN.to_vec())
    );
    Ok(())
}
