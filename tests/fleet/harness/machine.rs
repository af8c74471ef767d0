//! A machine on which systemd is process 1, and the agent a service with the shipped unit file. It needs root, systemd
//! and cgroup v2, and is isolated from the host: see `machine.sh`.
//!
//! If `SIMPLETUNER_TEST_MACHINE` is `this`, the service is installed on this host, one test at a time:
//! `scripts/test vm` runs that in a virtual machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;

use super::{Program, TestFleet, WorkerHost, program, repository, wait_until};

const SYSTEMD: &str = "/lib/systemd/systemd";
const SERVICE: &str = "simpletuner-worker";
/// Units of systemd that the service requires.
const UNITS: [&str; 7] = [
    "sysinit.target",
    "basic.target",
    "sockets.target",
    "multi-user.target",
    "shutdown.target",
    "systemd-journald.service",
    "systemd-journald.socket",
];
/// The service's user on a namespaced machine.
const USER: u32 = 990;
const CGROUPS: &str = "/sys/fs/cgroup";

pub struct SystemdMachine {
    kind: MachineKind,
    root: PathBuf,
    group: PathBuf,
}

enum MachineKind {
    /// With its own processes, files and cgroups. `init` is the pid of its process 1 on this host.
    Namespaced { _systemd: Box<Program>, init: i32 },
    /// This host.
    Local,
}

impl SystemdMachine {
    /// Boots a machine for this worker with a Python trainer; the agent is not started yet. Returns `None` with a note
    /// where this is not possible.
    pub async fn boot(fleet: &TestFleet, host: &WorkerHost, trainer: &str) -> Option<Self> {
        let machine = if may_use_this_machine() { Self::local() } else { Self::create(fleet).await? };
        machine.install(host, trainer).await;
        Some(machine)
    }

    fn local() -> Self {
        Self { kind: MachineKind::Local, root: PathBuf::from("/"), group: PathBuf::from(CGROUPS) }
    }

    async fn create(fleet: &TestFleet) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let groups =
            check_supported().inspect_err(|requirement| eprintln!("not tested: systemd needs {requirement}")).ok()?;
        let name = format!("machine-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        let (root, group) = (fleet.path().join(&name), groups.join(format!("simpletuner-tests-{name}")));
        prepare_root(&root);
        fs::create_dir(&group).expect("a new group");
        let mut command = Command::new("sh");
        command.arg(repository("tests/fleet/harness/machine.sh")).args([&root, &group]);
        command.arg(program(SERVICE).parent().expect("a directory"));
        let systemd = Program::start(command, fleet.path().join(format!("{name}.log")));
        let init = wait_until("systemd", async || find_init(&systemd)).await;
        let machine = Self { kind: MachineKind::Namespaced { _systemd: Box::new(systemd), init }, root, group };
        let running =
            async || (machine.run(&["systemctl", "is-system-running"]).await.1.trim() == "running").then_some(());
        wait_until("the machine to be up", running).await;
        Some(machine)
    }

    /// Installs the service as in the guide: user, unit file, token that only root can read, settings.
    async fn install(&self, host: &WorkerHost, trainer: &str) {
        let service = format!("{SERVICE}.service");
        let home = home(&self.root);
        if matches!(self.kind, MachineKind::Local) {
            self.run_ok(&["install", "-m", "755", &program(SERVICE).to_string_lossy(), "/usr/local/bin/"]).await;
            self.run_ok(&["useradd", "--system", "--create-home", "--groups", "video,render", "simpletuner"]).await;
        }
        let unit = fs::read_to_string(repository("deploy/systemd").join(&service)).expect("the service's file");
        self.write(&format!("etc/systemd/system/{service}"), &unit);
        let token = self.write("etc/simpletuner/worker-token", &host.token);
        fs::set_permissions(token, Permissions::from_mode(0o600)).expect("permissions");
        let settings = [
            format!("SIMPLETUNER_ORCHESTRATOR_URL={}", host.url()),
            "SIMPLETUNER_TRAINER=/usr/bin/python3 /home/simpletuner/trainer.py".to_owned(),
            "SIMPLETUNER_KEEP_FREE=0".to_owned(), // works with any free disk space
            "SIMPLETUNER_SANDBOX_MIN=none".to_owned(), // most trainers exchange files with their test in the user's home
        ];
        self.write("etc/simpletuner/worker.env", &settings.join("\n"));
        self.write("home/simpletuner/trainer.py", trainer);
        let user = fs::metadata(&home).expect("a home").uid();
        chown(home.join("trainer.py"), Some(user), Some(user)).expect("an owner");
        self.systemctl(&["daemon-reload"]).await;
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        write(&self.root, path, text)
    }

    /// Runs a command there as root; returns whether it succeeded, and its output.
    async fn run(&self, command: &[&str]) -> (bool, String) {
        let mut wrapped = match &self.kind {
            MachineKind::Namespaced { init, .. } => {
                let mut wrapped = Command::new("nsenter");
                wrapped.arg("--all").arg(format!("--target={init}")).arg(command[0]);
                wrapped
            }
            MachineKind::Local => Command::new(command[0]),
        };
        let output = wrapped.args(&command[1..]).stdin(Stdio::null()).output().await.expect("a program");
        let printed = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
    }

    async fn run_ok(&self, command: &[&str]) {
        let (succeeded, output) = self.run(command).await;
        assert!(succeeded, "{}: {output}", command.join(" "));
    }

    /// Runs `systemctl`, which must succeed.
    async fn systemctl(&self, arguments: &[&str]) {
        self.run_ok(&[&["systemctl"], arguments].concat()).await;
    }

    /// Runs `systemctl VERB` for the agent's service, which must succeed.
    pub async fn control_agent(&self, verb: &str) {
        self.systemctl(&[verb, SERVICE]).await;
    }

    /// Sends a signal to the agent only.
    pub async fn signal(&self, signal: &str) {
        self.systemctl(&["kill", "--kill-who=main", "--signal", signal, SERVICE]).await;
    }

    /// Returns a property of the agent's service.
    pub async fn property(&self, property: &str) -> String {
        let (_, output) = self.run(&["systemctl", "show", "--value", "--property", property, SERVICE]).await;
        output.trim().to_owned()
    }

    /// Waits for a property of the agent's service.
    pub async fn wait_for_property(&self, property: &str, value: &str) {
        wait_until(&format!("{property} to be {value}"), async || {
            (self.property(property).await == value).then_some(())
        })
        .await;
    }

    /// Writes a drop-in for the unit, effective from the next start.
    pub async fn write_settings(&self, settings: &str) {
        self.write(&format!("etc/systemd/system/{SERVICE}.service.d/test.conf"), &format!("[Service]\n{settings}\n"));
        self.systemctl(&["daemon-reload"]).await;
    }

    /// Returns the processes of the agent's service by their pids on this host.
    pub fn processes(&self) -> Vec<i32> {
        processes_in(&self.group.join(format!("system.slice/{SERVICE}.service")))
    }

    /// Lets trainers that wait at the gate continue.
    pub fn open_gate(&self) {
        fs::write(self.home().join("gate"), "").expect("a gate");
    }

    /// Returns a file that a trainer has written in its home.
    pub fn trainer_file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.home().join(name)).ok()
    }

    /// Loads an `AppArmor` profile.
    pub async fn load_apparmor_profile(&self, profile: &str) {
        let file = self.write("run/simpletuner-worker.apparmor", profile);
        self.run_ok(&["apparmor_parser", "--replace", "--skip-cache", &file.to_string_lossy()]).await;
    }

    fn home(&self) -> PathBuf {
        home(&self.root)
    }
}

/// Returns whether tests may change this host.
pub fn may_use_this_machine() -> bool {
    std::env::var_os("SIMPLETUNER_TEST_MACHINE").is_some_and(|machine| machine == "this")
}

/// Returns the host's pid of a machine's process 1, once that is systemd: before, it still sees this host.
fn find_init(systemd: &Program) -> Option<i32> {
    let outer = systemd.pid();
    let init = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).ok()?.trim().parse().ok()?;
    let program = fs::read_to_string(format!("/proc/{init}/comm")).ok()?;
    (program.trim() == "systemd").then_some(init)
}

fn write(root: &Path, path: &str, text: &str) -> PathBuf {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(&path, text).expect("a file");
    path
}

fn home(root: &Path) -> PathBuf {
    root.join("home/simpletuner")
}

fn processes_in(group: &Path) -> Vec<i32> {
    let direct = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut all: Vec<i32> = direct.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        all.extend(processes_in(&entry.path()));
    }
    all
}

/// Returns where cgroups can be created, or what is missing.
fn check_supported() -> Result<PathBuf, &'static str> {
    let is_installed = |program: &str| {
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|at| Path::new(at).join(program).exists())
    };
    if !nix::unistd::geteuid().is_root() {
        return Err("root");
    }
    if !Path::new(SYSTEMD).exists()
        || !is_installed("unshare")
        || !is_installed("nsenter")
        || !is_installed("pivot_root")
    {
        return Err("the packages systemd and util-linux");
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut mount_fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let group = mount_fields.find(|mount| mount.get(2) == Some(&"cgroup2")).map(|mount| PathBuf::from(mount[1]));
    group.ok_or("cgroup v2")
}

/// Creates the machine's own directories and files.
fn prepare_root(root: &Path) {
    let users = format!("root:x:0:0::/root:/bin/sh\nsimpletuner:x:{USER}:{USER}::/home/simpletuner:/bin/sh\n");
    write(root, "etc/passwd", &users);
    write(root, "etc/group", &format!("root:x:0:\nsimpletuner:x:{USER}:\nvideo:x:44:\nrender:x:105:\n"));
    write(root, "etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    let units = root.join("etc/systemd/system");
    fs::create_dir_all(units.join("sockets.target.wants")).expect("a directory");
    for unit in UNITS {
        fs::copy(Path::new(SYSTEMD).with_file_name("system").join(unit), units.join(unit)).expect("a unit of systemd");
    }
    let journal = units.join("sockets.target.wants/systemd-journald.socket");
    std::os::unix::fs::symlink("../systemd-journald.socket", journal).expect("a link");
    fs::create_dir_all(home(root)).expect("a directory");
    chown(home(root), Some(USER), Some(USER)).expect("an owner");
    let temporary = root.join("tmp");
    fs::create_dir_all(&temporary).expect("a directory");
    fs::set_permissions(temporary, Permissions::from_mode(0o1777)).expect("permissions");
}

/// Cleans up after a test.
impl Drop for SystemdMachine {
    fn drop(&mut self) {
        match &self.kind {
            MachineKind::Namespaced { init, .. } => kill_machine(*init, &self.group),
            MachineKind::Local => uninstall(),
        }
    }
}

/// Kills process 1 with all others, and removes the cgroup.
fn kill_machine(init: i32, group: &Path) {
    if std::thread::panicking() {
        let target = format!("--target={init}");
        let _ = std::process::Command::new("nsenter").args(["--all", &target, "journalctl", "--no-pager"]).status();
    }
    // It may have ended already.
    let _ = kill(Pid::from_raw(init), Signal::SIGKILL);
    // Fails before Linux 5.14.
    let _ = fs::write(group.join("cgroup.kill"), "1");
    for _ in 0..500 {
        remove_cgroup(group);
        if !group.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn uninstall() {
    if std::thread::panicking() {
        let _ = std::process::Command::new("journalctl").args(["--no-pager", "--unit", SERVICE]).status();
    }
    for command in [
        &["systemctl", "kill", "--signal=KILL", SERVICE][..],
        &["systemctl", "stop", SERVICE],
        &["rm", "-rf", "/var/lib/simpletuner-worker", "/etc/systemd/system/simpletuner-worker.service.d"],
        &["systemctl", "reset-failed", SERVICE],
        &["userdel", "--remove", "simpletuner"],
    ] {
        let _ = std::process::Command::new(command[0]).args(&command[1..]).output();
    }
}

fn remove_cgroup(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        remove_cgroup(&entry.path());
    }
    // Busy until all of its processes were reaped.
    let _ = fs::remove_dir(group);
}
