//! A GPU host for one test: a work directory, and the agent as a process in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::fake_orchestrator::{FakeOrchestrator, TOKEN};
use crate::worker::cgroup::Cgroup;
use crate::worker::files::{AttemptDir, SupervisorRecord};
use crate::worker::process::{self, ProcId};
use crate::worker::supervisor::agent_pipe::{Assignment, SupervisorOrder};

/// Longer than anything here takes, even on a busy machine.
pub const TEST_TIMEOUT: Duration = Duration::from_mins(3);

/// The agent's binary. Cargo does not build it for a unit test of the same target, so it is built here once, with the
/// test's own settings: so the code under test is always current.
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
        // Cargo's variables about this test's package would make build scripts run again, here and in the next test.
        let is_package_variable = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars().filter(|(name, _)| is_package_variable(name)) {
            cargo.env_remove(name);
        }
        if !cfg!(feature = "ssr") {
            cargo.args(["--no-default-features", "--features", "worker"]);
        }
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let is_built = cargo.status().is_ok_and(|status| status.success());
        assert!(is_built, "the agent cannot be built");
        profile.join("simpletuner-worker")
    })
}

pub struct TestHost {
    work: TempDir,
    trainer: String,
    /// Additional flags.
    pub flags: Vec<String>,
    /// Additional variables.
    pub variables: Vec<(String, String)>,
    /// A command that starts the agent, before its own command line.
    wrapper_command: Vec<String>,
}

impl TestHost {
    /// With a shell script as its trainer.
    pub fn with_script(script: &str) -> io::Result<Self> {
        let work = tempfile::tempdir()?;
        for dir in ["trainer", "shared"] {
            std::fs::create_dir(work.path().join(dir))?;
        }
        let path = work.path().join("trainer/trainer.sh");
        std::fs::write(&path, script)?;
        let trainer = format!("sh {}", path.display());
        Ok(Self { work, trainer, flags: Vec::new(), variables: Vec::new(), wrapper_command: Vec::new() })
    }

    /// With a Python program as its trainer.
    pub fn with_python(program: &str) -> io::Result<Self> {
        let mut host = Self::with_script("")?;
        let path = host.work.path().join("trainer/trainer.py");
        std::fs::write(&path, program)?;
        host.trainer = format!("python3 {}", path.display());
        Ok(host)
    }

    /// With this trainer command.
    pub fn with_trainer(trainer: &str) -> io::Result<Self> {
        let mut host = Self::with_script("")?;
        trainer.clone_into(&mut host.trainer);
        Ok(host)
    }

    /// Replaces the trainer command.
    pub fn with_trainer_command(mut self, trainer: &str) -> Self {
        trainer.clone_into(&mut self.trainer);
        self
    }

    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// With a small separate disk for its state (see [`can_mount`]): `96m`.
    pub fn with_disk_size(self, size: &str) -> Self {
        let state = self.path().join("state");
        let script =
            format!("mkdir -p '{0}' && mount -t tmpfs -o size={size} small '{0}' && exec \"$@\"", state.display());
        self.with_wrapper(&["unshare", "-m", "sh", "-c", &script, "sh"])
    }

    /// Started by this command, which finally becomes the agent.
    pub fn with_wrapper(mut self, command: &[&str]) -> Self {
        self.wrapper_command = command.iter().map(|argument| (*argument).to_owned()).collect();
        self
    }

    pub fn path(&self) -> &Path {
        self.work.path()
    }

    /// A directory writable for both trainers and the test.
    pub fn trainer_dir(&self) -> PathBuf {
        self.path().join("shared")
    }

    pub fn attempt(&self, job: &str, attempt: u32) -> AttemptDir {
        AttemptDir::from_path(&self.path().join(format!("state/jobs/{job}/{attempt}")))
    }

    /// Waits for the supervisor's record.
    pub async fn supervisor(&self, job: &str, attempt: u32) -> SupervisorRecord {
        let dir = self.attempt(job, attempt);
        wait_until("a supervisor", || dir.read_json("supervisor.json").ok().flatten()).await
    }

    /// Runs a supervisor for the attempt in a directory until it exits.
    pub async fn supervise(&self, dir: &AttemptDir) -> io::Result<()> {
        let mut command = Command::new(binary());
        command
            .arg("supervise")
            .arg(self.path().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let path = std::env::var("PATH").map_err(io::Error::other)?;
        let environment = [("PATH".to_owned(), path)].into();
        let assignment = Assignment { dir: dir.path().to_owned(), environment };
        // Then its input is closed, as if the agent had exited.
        let mut orders = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        for order in [SupervisorOrder::Prepare(assignment), SupervisorOrder::Start] {
            orders.write_all(format!("{}\n", serde_json::to_string(&order)?).as_bytes()).await?;
        }
        drop(orders);
        let status = tokio::time::timeout(TEST_TIMEOUT, child.wait()).await.map_err(io::Error::other)??;
        if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
    }

    /// Starts the agent.
    pub fn start(&self, fake: &FakeOrchestrator) -> io::Result<AgentProcess> {
        self.start_at(&fake.url)
    }

    pub fn start_at(&self, url: &str) -> io::Result<AgentProcess> {
        self.start_with(self.agent(), url)
    }

    /// Starts the agent through another program, which gets its variables and flags.
    pub fn start_with(&self, command: Command, url: &str) -> io::Result<AgentProcess> {
        let child =
            self.with_agent_env(command, url).args(&self.flags).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        Ok(AgentProcess(child))
    }

    /// Runs a subcommand of the agent's program; returns exit code and output.
    pub async fn command(&self, arguments: &[&str]) -> io::Result<(Option<i32>, String)> {
        let mut program = self.with_clean_env(self.agent());
        let output = tokio::time::timeout(TEST_TIMEOUT, program.args(arguments).output()).await??;
        let output_bytes = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&output_bytes).into_owned()))
    }

    /// The agent's program, started by the wrapper if there is one.
    fn agent(&self) -> Command {
        let binary = binary().to_string_lossy().into_owned();
        let line: Vec<&String> = self.wrapper_command.iter().chain([&binary]).collect();
        let mut command = Command::new(line[0]);
        command.args(&line[1..]);
        command
    }

    /// A command with this host's variables, and those of its orchestrator.
    pub fn with_agent_env(&self, command: Command, url: &str) -> Command {
        let mut command = self.with_clean_env(command);
        command
            .env("SIMPLETUNER_ORCHESTRATOR_URL", url)
            .env("SIMPLETUNER_WORKER_TOKEN", TOKEN)
            .env("SIMPLETUNER_TRAINER", &self.trainer)
            // A test's own variables override the others.
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn with_clean_env(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("SIMPLETUNER_WORK_DIR", self.path().join("state"))
            .env("SIMPLETUNER_LOG_FORMAT", "text")
            // Tests run however full this machine's disk is.
            .env("SIMPLETUNER_KEEP_FREE", "0")
            // Most tests do not concern the sandbox, and some find the trainer's processes by the PIDs that it prints.
            .env("SIMPLETUNER_SANDBOX_MIN", std::env::var("SIMPLETUNER_TEST_SANDBOX").unwrap_or("none".to_owned()))
            .env("SIMPLETUNER_PATHS", format!("shared={}:rw", self.trainer_dir().display()))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

fn is_own_process(process: ProcId) -> bool {
    u32::try_from(process.pid) == Ok(std::process::id())
}

/// Kills all processes of the test.
impl Drop for TestHost {
    fn drop(&mut self) {
        for dir in crate::worker::files::list_attempts(&self.path().join("state")).unwrap_or_default() {
            let marker = format!("SIMPLETUNER_STOP_FILE={}", dir.stop_file().display());
            for process in process::find_by_environment(&marker) {
                process.signal(Signal::SIGKILL);
            }
            let record: Option<SupervisorRecord> = dir.read_json("supervisor.json").ok().flatten();
            // It would try for minutes to write to the test's directory. Some tests record themselves as the supervisor.
            let supervisor = record.as_ref().map(|record| record.supervisor);
            supervisor.filter(|found| !is_own_process(*found)).inspect(|found| found.signal(Signal::SIGKILL));
            if let Some(group) = record.and_then(|record| record.cgroup).map(|path| Cgroup::from_path(&path)) {
                let result = group.kill();
                while result.is_ok() && !group.is_empty() {
                    std::thread::yield_now();
                }
                group.remove();
            }
        }
    }
}

/// Whether a test can mount a disk; if not, prints why it is skipped.
pub fn can_mount() -> bool {
    let result = std::process::Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "small", "/mnt"]).output();
    match result {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!("skipped, because nothing can be mounted here: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            println!("skipped, because there is no unshare: {error}");
            false
        }
    }
}

pub struct AgentProcess(Child);

/// A test that fails shows what its agent has logged and the test has not read.
impl Drop for AgentProcess {
    fn drop(&mut self) {
        let stderr = self.0.stderr.take().filter(|_| std::thread::panicking());
        let Some(stderr) = stderr.and_then(|stderr| stderr.into_owned_fd().ok()) else { return };
        let mut log = Vec::new();
        // The agent may still run, so the end is where nothing more can be read.
        let read = fcntl(&stderr, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
            .map_err(io::Error::from)
            .and_then(|_| File::from(stderr).read_to_end(&mut log));
        println!("the agent's log, {read:?}:\n{}", String::from_utf8_lossy(&log));
    }
}

impl AgentProcess {
    /// The path outside the agent's mounts.
    pub fn path_seen_by_agent(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/{}/root{}", self.pid()?, path.display())))
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.pid()?).map_err(io::Error::other)?;
        kill(Pid::from_raw(pid), signal).map_err(io::Error::from)
    }

    pub fn pid(&self) -> io::Result<u32> {
        self.0.id().ok_or_else(|| io::Error::other("it has exited"))
    }

    /// The supervisors that it has started and that are still running.
    pub fn supervisors(&self) -> io::Result<Vec<ProcId>> {
        let mut found = process::descendants(i32::try_from(self.pid()?).map_err(io::Error::other)?);
        found.retain(|process| {
            let line = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"supervise")
        });
        Ok(found)
    }

    /// Peak memory in bytes.
    pub fn peak_memory(&self) -> io::Result<u64> {
        peak_memory(self.pid()?)
    }

    /// Kills the agent without warning, as a power failure would.
    pub async fn kill(mut self) -> io::Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.0.wait().await.map(drop)
    }

    /// Waits for a line with these words, and returns it.
    pub async fn wait_for_line(mut self, words: &str) -> io::Result<String> {
        self.read_until_line(words).await
    }

    /// Like [`Self::wait_for_line`], for an agent that keeps running.
    pub async fn read_until_line(&mut self, words: &str) -> io::Result<String> {
        let stderr = self.0.stderr.take().ok_or_else(|| io::Error::other("its output is already read"))?;
        let mut lines = tokio::io::BufReader::new(stderr).lines();
        let wait = async {
            while let Some(line) = lines.next_line().await? {
                if line.contains(words) {
                    return Ok(line);
                }
            }
            Err(io::Error::other(format!("it exited without {words:?}")))
        };
        tokio::time::timeout(TEST_TIMEOUT, wait).await.unwrap_or_else(|_| panic!("its output lacks {words:?}"))
    }

    /// Waits for the exit; returns exit code and output.
    pub async fn wait_for_exit(mut self) -> io::Result<(Option<i32>, String)> {
        let mut stderr_text = String::new();
        let mut stderr = self.0.stderr.take();
        let wait = async {
            if let Some(stderr) = &mut stderr {
                stderr.read_to_string(&mut stderr_text).await?;
            }
            self.0.wait().await
        };
        let Ok(status) = tokio::time::timeout(TEST_TIMEOUT, wait).await else {
            panic!("the agent does not exit; its output: {stderr_text}")
        };
        Ok((status?.code(), stderr_text))
    }
}

/// The first complete line of the log: a possible beginning of a secret arrives later than the rest.
pub async fn first_line(fake: &FakeOrchestrator) -> String {
    fake.wait_until("the first line", |shared| {
        let (line, _) = std::str::from_utf8(&shared.log).ok()?.split_once('\n')?;
        Some(line.to_owned())
    })
    .await
}

/// The process with this PID in the trainer's PID namespace. At level `full` that is a separate namespace.
pub fn process_by_inner_pid(trainer: ProcId, number: i32) -> Option<ProcId> {
    let namespace = |pid: &str, kind: &str| std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
    // The trainer may have created the namespace without being in it.
    let trainer_namespace = namespace(&trainer.pid.to_string(), "pid_for_children")?;
    let pids = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_match = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let last_word = |name| status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().last();
        // A zombie is in no namespace; its parent is.
        let pid_namespace = || namespace(pid, "pid").or_else(|| namespace(last_word("PPid:")?, "pid_for_children"));
        last_word("NSpid:") == Some(&number.to_string()) && pid_namespace().as_ref() == Some(&trainer_namespace)
    };
    let mut found = pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit())).filter(is_match);
    ProcId::from_pid(found.next()?.parse().ok()?)
}

/// Peak memory of a process, in bytes.
pub fn peak_memory(pid: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kib = line.and_then(|kib| kib.trim().parse::<u64>().ok()).ok_or_else(|| io::Error::other("no VmHWM"))?;
    Ok(kib << 10)
}

/// Polls until there is a value.
pub async fn wait_until<T>(condition: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "timeout: {condition}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
