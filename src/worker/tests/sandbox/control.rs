//! The trials without a sandbox: there each must succeed, or it proves nothing. They do no harm: they write to no file
//! that they open, remove what they create, and set only values that were already set.

use std::io;

use super::{FILE_TRIALS, FILES, FILL_TRIALS, KERNEL, KERNEL_TRIALS, NEIGHBOR_TRIALS};
use super::{run_fill_trials, run_neighbor_trials, run_trials, trials_with_result};

/// Trials that may fail even as root.
const HELD_ANYWAY: &[&str] = &[
    // The supervisor follows no link for any trainer.
    "event-link",
    // Some kernels lack it.
    "sysrq",
    // A machine without systemd has neither.
    "system-bus",
    "systemd-run",
    // Only one process can bind a port, and the supervisor ignores requests without the job's secret.
    "webhook-port",
    "webhook-port-of-all",
    "webhook",
];

/// Trials that must succeed also without root, as the agent's user.
const ANY_USER_TRIALS: &[&str] = &[
    "install-id",
    "list-state",
    "list-jobs",
    "secrets",
    "spec",
    "sandbox-plan",
    "exit-file",
    "stop-file",
    "ssh-keys",
    "worker-env",
    "write-own-program",
    "hard-link",
    "agents-descriptors",
    "open-descriptors",
    "roots",
    "directories",
    "environments",
    "new-privileges",
    "signal-supervisor",
    "see-others",
    "clone3",
    "keyring",
    "type-in-terminal",
    "abstract-socket",
    "docker",
    "kill",
    "renice",
    "limit-others",
    "pin-others",
    "terminals",
    "system-v-memory",
    "message-queue",
    "semaphore",
    "shared-memory",
    "fill-shared-memory",
    "small-mounts",
    "temporary-files",
    "search",
    "home",
    "abstract",
    "temporary",
];

/// Asserts that every trial succeeded that must succeed here.
fn assert_all_escaped(lines: &[String], trials: usize) {
    let (out, held) = (trials_with_result(lines, "out"), trials_with_result(lines, "held"));
    assert_eq!(out.len() + held.len(), trials, "{lines:#?}");
    let may_hold = |name: &&str| {
        if nix::unistd::geteuid().is_root() { HELD_ANYWAY.contains(name) } else { !ANY_USER_TRIALS.contains(name) }
    };
    let proves_nothing: Vec<_> = held.into_iter().filter(|name| !may_hold(name)).collect();
    assert_eq!(proves_nothing, Vec::<&str>::new(), "{lines:#?}");
}

#[tokio::test]
async fn every_trial_of_files_gets_out_where_nothing_confines_it() -> io::Result<()> {
    assert_all_escaped(&run_trials("none", FILES).await?, FILE_TRIALS);
    Ok(())
}

#[tokio::test]
async fn every_trial_of_the_kernel_gets_out_where_nothing_confines_it() -> io::Result<()> {
    assert_all_escaped(&run_trials("none", KERNEL).await?, KERNEL_TRIALS);
    Ok(())
}

#[tokio::test]
async fn every_trial_of_filling_gets_out_where_nothing_confines_it() -> io::Result<()> {
    assert_all_escaped(&run_fill_trials("none").await?, FILL_TRIALS);
    Ok(())
}

#[tokio::test]
async fn every_trial_of_a_neighbour_gets_out_where_nothing_confines_it() -> io::Result<()> {
    assert_all_escaped(&run_neighbor_trials("none").await?, NEIGHBOR_TRIALS);
    Ok(())
}
