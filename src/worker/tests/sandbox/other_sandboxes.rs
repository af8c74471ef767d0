//! The same trials in other programs' sandboxes. Those that succeed there show that a trial can succeed in a sandbox,
//! and those that fail show what is usual.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::outside::AttackTargets;
use super::{FILES, KERNEL, TOOLS};

/// An attempt's directories, and a file with the trials.
struct TrialFiles(TempDir);

impl TrialFiles {
    fn new(program: &str) -> io::Result<Self> {
        let temp = tempfile::tempdir()?;
        for dir in ["bundle", "output"] {
            std::fs::create_dir_all(temp.path().join("jobs/j_1/1").join(dir))?;
        }
        std::fs::write(temp.path().join("trials.py"), [&AttackTargets::empty_line(), TOOLS, program].concat())?;
        std::fs::set_permissions(temp.path(), std::fs::Permissions::from_mode(0o755))?;
        Ok(Self(temp))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Returns a line for each trial: `name out …` or `name held …`.
    fn run_and_capture(mut sandbox: Command) -> io::Result<String> {
        let output = sandbox.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(text(&output.stdout) + &text(&output.stderr))
    }
}

/// A command from its program and arguments.
fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn assert_trials(output: &str, result: &str, trials: &[&str]) {
    for trial in trials {
        let matches = |line: &str| line.starts_with(&format!("{trial} {result}"));
        assert!(output.lines().any(matches), "{trial} is not {result}: {output}");
    }
}

/// Bubblewrap with its usual flags, as an unprivileged user: it would let root write to the host's `/proc/sys`.
fn bubblewrap(trials: &TrialFiles) -> Command {
    // Some trials wait for a response that is never sent there.
    let mut command = command(&["timeout", "20", "setpriv"]);
    if nix::unistd::geteuid().is_root() {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    command.args("bwrap --unshare-all --share-net --die-with-parent --ro-bind / / --proc /proc --dev /dev".split(' '));
    let output = trials.path("jobs/j_1/1/output");
    command.args(["--tmpfs", "/tmp", "--ro-bind", &trials.path(""), "/mnt", "--bind-try", &output, &output]);
    command.args(["--chdir", "/tmp", "--setenv", "CONFIG_PATH", &trials.path("jobs/j_1/1/bundle/config.json")]);
    command.args(["--setenv", "SIMPLETUNER_JOB_ID", "j_1", "python3", "/mnt/trials.py"]);
    command
}

#[test]
fn some_trials_get_out_of_bubblewrap() -> io::Result<()> {
    if Command::new("bwrap").arg("--version").output().is_err() {
        println!("skipped, because bubblewrap is not installed");
        return Ok(());
    }
    for (program, out) in [(FILES, ["exit-file", "sandbox-plan"]), (KERNEL, ["unshare-user", "keyring"])] {
        let trials = TrialFiles::new(program)?;
        assert_trials(&TrialFiles::run_and_capture(bubblewrap(&trials))?, "out", &out);
    }
    Ok(())
}

/// Podman as root, with an overlay on the host's own files. It rejects a hybrid layout of cgroups, so it gets another
/// one in its own mount namespace.
const PODMAN: &str = r#"
umount -R -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup || exit 1
exec podman --root "$STATE/root" --runroot "$STATE/run" run --rm --network none --cgroups=disabled --ulimit nofile=1024:1024 \
    --ulimit nproc=4096:4096 --volume "$TRIALS:/mnt:ro" --volume "$OUTPUT:$OUTPUT" --workdir /tmp --tmpfs /tmp:notmpcopyup \
    --env CONFIG_PATH --env SIMPLETUNER_JOB_ID=j_1 --env PATH=/usr/bin:/bin --rootfs /:O "$@"
"#;

fn podman(trials: &TrialFiles, state: &Path, program: &[&str]) -> Command {
    let mut command = command(&[
        "timeout",
        "--kill-after=5",
        "60",
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        PODMAN,
        "sh",
    ]);
    command
        .args(program)
        .env("STATE", state)
        .env("TRIALS", trials.path(""))
        .env("OUTPUT", trials.path("jobs/j_1/1/output"));
    command.env("CONFIG_PATH", trials.path("jobs/j_1/1/bundle/config.json"));
    command
}

#[test]
fn some_trials_get_out_of_podman_and_others_do_not() -> io::Result<()> {
    // Below /var, because /tmp may be an overlay, and one overlay cannot be on another.
    let state = tempfile::tempdir_in("/var/tmp")?;
    let empty_trials = TrialFiles::new("")?;
    let check = podman(&empty_trials, state.path(), &["true"]).output()?;
    if !check.status.success() {
        println!("skipped, because podman cannot run here: {}", String::from_utf8_lossy(&check.stderr));
        return Ok(());
    }
    // The only process, because one trial reads other processes' descriptors, which would take the container's output.
    let without_init: &[&str] = &["python3", "/mnt/trials.py"];
    let with_an_init = &["sh", "-c", "python3 /mnt/trials.py; true"];
    let files = (&["shadow", "root-home"], &["hard-link", "make-device", "sysctl", "devices"]);
    let kernel = (&["unshare-user", "ptrace-parent", "keyctl"], &["mount", "load-module", "bpf", "perf", "clock"]);
    for (trials, program, out, held) in
        [(FILES, without_init, &files.0[..], &files.1[..]), (KERNEL, with_an_init, &kernel.0[..], &kernel.1[..])]
    {
        let trials = TrialFiles::new(trials)?;
        let output = TrialFiles::run_and_capture(podman(&trials, state.path(), program))?;
        assert_trials(&output, "out", out);
        assert_trials(&output, "held", held);
    }
    Ok(())
}
