//! A GPU host for one test: a work directory, and the agent as a process in it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio::process::{Child, Command};

use super::fake::{Fake, TOKEN};
use crate::files::{AttemptDir, Running};
use crate::process::{self, ProcId};
use crate::supervisor::cgroup::Cgroup;

/// Nothing here takes longer, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The agent's binary. Cargo does not build it for a unit test of the same target, so it is built here, once, the way this
/// test was: then it is always the code under test.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // <target>/<profile>/deps/<this test>
        let test = std::env::current_exe().unwrap_or_else(|error| panic!("own path: {error}"));
        let Some(profile) = test.ancestors().nth(2) else { panic!("{} is in no target directory", test.display()) };
        let Some(target) = profile.parent() else { panic!("{} has no parent", profile.display()) };
        let mut cargo = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()));
        cargo.args(["build", "--quiet", "--bin", "simpletuner-worker", "--manifest-path"]);
        cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).arg("--target-dir").arg(target);
        // What cargo told this test of its own package would have build scripts run again, here and in the next test.
        let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars().filter(|(name, _)| own(name)) {
            cargo.env_remove(name);
        }
        if !cfg!(feature = "ssr") {
            cargo.args(["--no-default-features", "--features", "worker"]);
        }
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo.status().is_ok_and(|status| status.success());
        assert!(built, "the agent cannot be built");
        profile.join("simpletuner-worker")
    })
}

/// The host.
pub struct Host {
    work: TempDir,
    trainer: String,
    /// More flags.
    pub flags: Vec<String>,
    /// More variables.
    pub variables: Vec<(String, String)>,
    /// What begins the agent, the command line before its own.
    before: Vec<String>,
}

impl Host {
    /// With a trainer that is a shell script.
    pub fn with_script(script: &str) -> io::Result<Self> {
        let work = tempfile::tempdir()?;
        for dir in ["trainer", "shared"] {
            std::fs::create_dir(work.path().join(dir))?;
        }
        let path = work.path().join("trainer/trainer.sh");
        std::fs::write(&path, script)?;
        let trainer = format!("sh {}", path.display());
        Ok(Self { work, trainer, flags: Vec::new(), variables: Vec::new(), before: Vec::new() })
    }

    /// With a trainer that is a Python program.
    pub fn with_python(program: &str) -> io::Result<Self> {
        let mut host = Self::with_script("")?;
        let path = host.work.path().join("trainer/trainer.py");
        std::fs::write(&path, program)?;
        host.trainer = format!("python3 {}", path.display());
        Ok(host)
    }

    /// With this command.
    pub fn with_trainer(trainer: &str) -> io::Result<Self> {
        let mut host = Self::with_script("")?;
        trainer.clone_into(&mut host.trainer);
        Ok(host)
    }

    /// With another command for its trainer.
    pub fn trained_by(mut self, trainer: &str) -> Self {
        trainer.clone_into(&mut self.trainer);
        self
    }

    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// With a small disk for its state, which nobody else sees (see [`may_mount`]): `96m`.
    pub fn on_disk_of(self, size: &str) -> Self {
        let state = self.path().join("state");
        let script =
            format!("mkdir -p '{0}' && mount -t tmpfs -o size={size} small '{0}' && exec \"$@\"", state.display());
        self.begun_by(&["unshare", "-m", "sh", "-c", &script, "sh"])
    }

    /// Begun by this command, which becomes the agent's in the end.
    pub fn begun_by(mut self, command: &[&str]) -> Self {
        self.before = command.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub fn path(&self) -> &Path {
        self.work.path()
    }

    /// What its trainers may write to, as the test can.
    pub fn shared(&self) -> PathBuf {
        self.path().join("shared")
    }

    pub fn attempt(&self, job: &str, attempt: u32) -> AttemptDir {
        AttemptDir::at(&self.path().join(format!("state/jobs/{job}/{attempt}")))
    }

    /// The supervisor, once there is one.
    pub async fn supervisor(&self, job: &str, attempt: u32) -> Running {
        let dir = self.attempt(job, attempt);
        until("a supervisor", || dir.read("supervisor.json").ok().flatten()).await
    }

    /// Runs a supervisor for a directory, to its end.
    pub async fn supervise(&self, dir: &AttemptDir) -> io::Result<()> {
        let mut command = Command::new(binary());
        command.arg("supervise").arg(dir.path()).stdin(Stdio::null()).kill_on_drop(true);
        let ended = tokio::time::timeout(PATIENCE, command.status()).await.map_err(io::Error::other)??;
        if ended.success() { Ok(()) } else { Err(io::Error::other(ended.to_string())) }
    }

    /// Starts the agent.
    pub fn start(&self, fake: &Fake) -> io::Result<Agent> {
        self.start_at(&fake.url)
    }

    pub fn start_at(&self, url: &str) -> io::Result<Agent> {
        self.start_by(self.agent(), url)
    }

    /// Starts it by another program, which is given its variables and flags.
    pub fn start_by(&self, command: Command, url: &str) -> io::Result<Agent> {
        let child = self.given(command, url).args(&self.flags).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        Ok(Agent(child))
    }

    /// Runs a command of the agent's program to its end: exit code, and what it said.
    pub async fn command(&self, arguments: &[&str]) -> io::Result<(Option<i32>, String)> {
        let mut program = self.bare(self.agent());
        let output = tokio::time::timeout(PATIENCE, program.args(arguments).output()).await??;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// The agent's program, begun by whatever begins it here.
    fn agent(&self) -> Command {
        let binary = binary().to_string_lossy().into_owned();
        let line: Vec<&String> = self.before.iter().chain([&binary]).collect();
        let mut command = Command::new(line[0]);
        command.args(&line[1..]);
        command
    }

    /// A command with this host's variables, and those that name its orchestrator.
    pub fn given(&self, command: Command, url: &str) -> Command {
        let mut command = self.bare(command);
        command
            .env("SIMPLETUNER_ORCHESTRATOR_URL", url)
            .env("SIMPLETUNER_WORKER_TOKEN", TOKEN)
            .env("SIMPLETUNER_TRAINER", &self.trainer)
            // What a test says wins.
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn bare(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("SIMPLETUNER_WORK_DIR", self.path().join("state"))
            .env("SIMPLETUNER_LOG_FORMAT", "text")
            // However full this machine's disk is.
            .env("SIMPLETUNER_KEEP_FREE", "0")
            // Most tests are about something else, and some look at the trainer's processes by the numbers that it prints.
            .env("SIMPLETUNER_SANDBOX_MIN", std::env::var("SIMPLETUNER_TEST_SANDBOX").unwrap_or("none".to_owned()))
            .env("SIMPLETUNER_PATHS", format!("shared={}:rw", self.shared().display()))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// No process of a test outlives it.
impl Drop for Host {
    fn drop(&mut self) {
        for dir in crate::files::attempts(&self.path().join("state")).unwrap_or_default() {
            let marker = format!("SIMPLETUNER_STOP_FILE={}", dir.stop_file().display());
            for left in process::with_environment(&marker) {
                left.signal(Signal::SIGKILL);
            }
            let running: Option<Running> = dir.read("supervisor.json").ok().flatten();
            if let Some(group) = running.and_then(|running| running.cgroup).map(|path| Cgroup::at(&path)) {
                let killed = group.kill();
                while killed.is_ok() && !group.is_empty() {
                    std::thread::yield_now();
                }
                group.remove();
            }
        }
    }
}

/// Whether a test may have a disk of its own; if not, it says why it is skipped.
pub fn may_mount() -> bool {
    let tried = std::process::Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "small", "/mnt"]).output();
    match tried {
        Ok(done) if done.status.success() => true,
        Ok(done) => {
            println!("skipped, as nothing can be mounted here: {}", String::from_utf8_lossy(&done.stderr));
            false
        }
        Err(error) => {
            println!("skipped, as there is no unshare: {error}");
            false
        }
    }
}

/// The agent's process.
pub struct Agent(Child);

impl Agent {
    /// Where a path of the agent's is for us, as it may have disks of its own.
    pub fn sees(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/{}/root{}", self.pid()?, path.display())))
    }

    pub fn id(&self) -> io::Result<u32> {
        self.0.id().ok_or_else(|| io::Error::other("it has ended"))
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid =
            self.0.id().and_then(|pid| i32::try_from(pid).ok()).ok_or_else(|| io::Error::other("it has ended"))?;
        kill(Pid::from_raw(pid), signal).map_err(io::Error::from)
    }

    pub fn pid(&self) -> io::Result<u32> {
        self.0.id().ok_or_else(|| io::Error::other("it has ended"))
    }

    /// The most memory that it ever had, in bytes.
    pub fn peak(&self) -> io::Result<u64> {
        peak(self.pid()?)
    }

    /// As a power cut would.
    pub async fn kill(mut self) -> io::Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.0.wait().await.map(drop)
    }

    /// Waits until it says this; answers with the line.
    pub async fn says(mut self, words: &str) -> io::Result<String> {
        self.line(words).await
    }

    /// The same once, of an agent that goes on.
    pub async fn line(&mut self, words: &str) -> io::Result<String> {
        let stderr = self.0.stderr.take().ok_or_else(|| io::Error::other("somebody listens already"))?;
        let mut lines = tokio::io::BufReader::new(stderr).lines();
        let wait = async {
            while let Some(line) = lines.next_line().await? {
                if line.contains(words) {
                    return Ok(line);
                }
            }
            Err(io::Error::other(format!("it ended and never said {words:?}")))
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("it does not say {words:?}"))
    }

    /// Waits for the end: exit code, and what it said.
    pub async fn end(mut self) -> io::Result<(Option<i32>, String)> {
        let mut said = String::new();
        let mut stderr = self.0.stderr.take();
        let wait = async {
            if let Some(stderr) = &mut stderr {
                stderr.read_to_string(&mut said).await?;
            }
            self.0.wait().await
        };
        let Ok(status) = tokio::time::timeout(PATIENCE, wait).await else {
            panic!("the agent does not end; it said: {said}")
        };
        Ok((status?.code(), said))
    }
}

/// The first line of the log, once it is whole: a tail that may be the beginning of a secret arrives later than the rest.
pub async fn first_line(fake: &Fake) -> String {
    fake.until("the first line", |shared| {
        let (line, _) = std::str::from_utf8(&shared.log).ok()?.split_once('\n')?;
        Some(line.to_owned())
    })
    .await
}

/// The process that a trainer knows by this number. At level `full` it has numbers of its own.
pub fn known_as(trainer: ProcId, number: i32) -> Option<ProcId> {
    let namespace = |pid: &str, of: &str| std::fs::read_link(format!("/proc/{pid}/ns/{of}")).ok();
    // The trainer may be the one that made the namespace, and is then not in it.
    let its = namespace(&trainer.pid.to_string(), "pid_for_children")?;
    let pids = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_it = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let last = |name| status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().last();
        // A zombie is in no namespace; its parent is.
        let there = || namespace(pid, "pid").or_else(|| namespace(last("PPid:")?, "pid_for_children"));
        last("NSpid:") == Some(&number.to_string()) && there().as_ref() == Some(&its)
    };
    let mut found = pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit())).filter(is_it);
    ProcId::of(found.next()?.parse().ok()?)
}

/// The most memory that a process ever had, in bytes.
pub fn peak(pid: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kib = line.and_then(|kib| kib.trim().parse::<u64>().ok()).ok_or_else(|| io::Error::other("no VmHWM"))?;
    Ok(kib << 10)
}

/// Looks until there is something.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
