//! The trials where nothing confines them: each must get out there, or it proves nothing. Where it does, it harms nothing: what
//! it opens is not written, what it makes is removed, what it sets is what was there.

use std::io;

use super::{FILE_TRIALS, FILES, FILL_TRIALS, KERNEL, KERNEL_TRIALS, NEIGHBOR_TRIALS};
use super::{run_fill_trials, run_neighbor_trials, run_trials, trials_with_result};

/// What not even root gets everywhere.
const HELD_ANYWAY: &[&str] = &[
    // The supervisor follows no link for any trainer.
    "event-link",
    // Kernels may be built without.
    "sysrq",
    // A machine without systemd has neither.
    "system-bus",
    "systemd-run",
    // The kernel gives a port to one only, and a process without the job's secret is ignored.
    "webhook-port",
    "webhook-port-of-all",
    "webhook",
];

/// What any user gets, of the agent whose user it is.
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

/// Those that got out are those that must.
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
