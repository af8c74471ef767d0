//! A machine on which systemd is process 1, and the agent a service of it, by the file that is shipped. It needs root,
//! systemd and cgroup v2, and takes nothing from anybody else: see `machine.sh`.
//!
//! Where `SIMPLETUNER_TEST_MACHINE` is `this`, the service is installed on this very machine, one test at a time:
//! `scripts/test vm` runs that in a virtual machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;

use super::{Fleet, Host, Program, program, repository, until};

const SYSTEMD: &str = "/lib/systemd/systemd";
const SERVICE: &str = "simpletuner-worker";
/// What of systemd's own the service stands on.
const UNITS: [&str; 7] = [
    "sysinit.target",
    "basic.target",
    "sockets.target",
    "multi-user.target",
    "shutdown.target",
    "systemd-journald.service",
    "systemd-journald.socket",
];
/// The service's user, on a machine that is made for a test.
const USER: u32 = 990;
const CGROUPS: &str = "/sys/fs/cgroup";

/// See the module.
pub struct Machine {
    place: Place,
    root: PathBuf,
    group: PathBuf,
}

enum Place {
    /// One with processes, files and control groups of its own. `init` is its process 1, by the number that it has here.
    Made { _systemd: Box<Program>, init: i32 },
    /// This one.
    This,
}

impl Machine {
    /// Boots one whose agent is this host's worker and trains with this Python program; the agent is not started yet. None
    /// where such machines cannot be; who runs the tests is told.
    pub async fn boot(fleet: &Fleet, host: &Host, trainer: &str) -> Option<Self> {
        let machine = if is_this() { Self::here() } else { Self::make(fleet).await? };
        machine.install(host, trainer).await;
        Some(machine)
    }

    fn here() -> Self {
        Self { place: Place::This, root: PathBuf::from("/"), group: PathBuf::from(CGROUPS) }
    }

    async fn make(fleet: &Fleet) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let groups = possible().inspect_err(|what| eprintln!("not tested: systemd needs {what}")).ok()?;
        let name = format!("machine-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        let (root, group) = (fleet.path().join(&name), groups.join(format!("simpletuner-tests-{name}")));
        furnish(&root);
        fs::create_dir(&group).expect("a new group");
        let mut command = Command::new("sh");
        command.arg(repository("tests/fleet/harness/machine.sh")).args([&root, &group]);
        command.arg(program(SERVICE).parent().expect("a directory"));
        let systemd = Program::start(command, fleet.path().join(format!("{name}.log")));
        let init = until("systemd", async || process_one(&systemd)).await;
        let machine = Self { place: Place::Made { _systemd: Box::new(systemd), init }, root, group };
        let running =
            async || (machine.run(&["systemctl", "is-system-running"]).await.1.trim() == "running").then_some(());
        until("the machine to be up", running).await;
        Some(machine)
    }

    /// As the guide says: a user, the service's file, the token that only root can read, the settings.
    async fn install(&self, host: &Host, trainer: &str) {
        let service = format!("{SERVICE}.service");
        let home = home(&self.root);
        if matches!(self.place, Place::This) {
            self.done(&["install", "-m", "755", &program(SERVICE).to_string_lossy(), "/usr/local/bin/"]).await;
            self.done(&["useradd", "--system", "--create-home", "--groups", "video,render", "simpletuner"]).await;
        }
        let unit = fs::read_to_string(repository("deploy/systemd").join(&service)).expect("the service's file");
        self.write(&format!("etc/systemd/system/{service}"), &unit);
        let token = self.write("etc/simpletuner/worker-token", &host.token);
        fs::set_permissions(token, Permissions::from_mode(0o600)).expect("permissions");
        let settings = [
            format!("SIMPLETUNER_ORCHESTRATOR_URL={}", host.url()),
            "SIMPLETUNER_TRAINER=/usr/bin/python3 /home/simpletuner/trainer.py".to_owned(),
            "SIMPLETUNER_KEEP_FREE=0".to_owned(), // however full this machine's disk is
            "SIMPLETUNER_SANDBOX_MIN=none".to_owned(), // most trainers meet their test in the user's home
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

    /// Runs a command there as root; whether it succeeded, and what it said.
    async fn run(&self, command: &[&str]) -> (bool, String) {
        let mut entered = match &self.place {
            Place::Made { init, .. } => {
                let mut entered = Command::new("nsenter");
                entered.arg("--all").arg(format!("--target={init}")).arg(command[0]);
                entered
            }
            Place::This => Command::new(command[0]),
        };
        let output = entered.args(&command[1..]).stdin(Stdio::null()).output().await.expect("a program");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    async fn done(&self, command: &[&str]) {
        let (done, said) = self.run(command).await;
        assert!(done, "{}: {said}", command.join(" "));
    }

    /// What is asked of systemd is done.
    async fn systemctl(&self, arguments: &[&str]) {
        self.done(&[&["systemctl"], arguments].concat()).await;
    }

    /// `systemctl VERB` for the agent's service; it is done.
    pub async fn agent(&self, verb: &str) {
        self.systemctl(&[verb, SERVICE]).await;
    }

    /// Sends the agent, and nobody else of its service, a signal.
    pub async fn signal(&self, signal: &str) {
        self.systemctl(&["kill", "--kill-who=main", "--signal", signal, SERVICE]).await;
    }

    /// A property of the agent's service.
    pub async fn shows(&self, property: &str) -> String {
        let (_, said) = self.run(&["systemctl", "show", "--value", "--property", property, SERVICE]).await;
        said.trim().to_owned()
    }

    /// Waits for a property of the agent's service to be so.
    pub async fn until_shows(&self, property: &str, value: &str) {
        until(&format!("{property} to be {value}"), async || (self.shows(property).await == value).then_some(())).await;
    }

    /// Settings beside those of the file that is shipped, from the next start on.
    pub async fn set(&self, settings: &str) {
        self.write(&format!("etc/systemd/system/{SERVICE}.service.d/test.conf"), &format!("[Service]\n{settings}\n"));
        self.systemctl(&["daemon-reload"]).await;
    }

    /// The processes of the agent's service, by the numbers that they have here.
    pub fn processes(&self) -> Vec<i32> {
        processes_in(&self.group.join(format!("system.slice/{SERVICE}.service")))
    }

    /// Lets trainers that wait at the gate go on.
    pub fn open_gate(&self) {
        fs::write(self.home().join("gate"), "").expect("a gate");
    }

    /// What a trainer has left in its home.
    pub fn left(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.home().join(name)).ok()
    }

    /// Loads a profile of `AppArmor`'s.
    pub async fn confine(&self, profile: &str) {
        let file = self.write("run/simpletuner-worker.apparmor", profile);
        self.done(&["apparmor_parser", "--replace", "--skip-cache", &file.to_string_lossy()]).await;
    }

    fn home(&self) -> PathBuf {
        home(&self.root)
    }
}

/// Whether tests may do with this machine what they want.
pub fn is_this() -> bool {
    std::env::var_os("SIMPLETUNER_TEST_MACHINE").is_some_and(|machine| machine == "this")
}

/// A machine's process 1, by the number that it has here, once that is systemd: before, it still sees this machine.
fn process_one(systemd: &Program) -> Option<i32> {
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
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut all: Vec<i32> = own.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        all.extend(processes_in(&entry.path()));
    }
    all
}

/// Where groups can be made; or what is missing.
fn possible() -> Result<PathBuf, &'static str> {
    let there = |program: &str| {
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|at| Path::new(at).join(program).exists())
    };
    if !nix::unistd::geteuid().is_root() {
        return Err("root");
    }
    if !Path::new(SYSTEMD).exists() || !there("unshare") || !there("nsenter") || !there("pivot_root") {
        return Err("the packages systemd and util-linux");
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut version_2 = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let group = version_2.find(|mount| mount.get(2) == Some(&"cgroup2")).map(|mount| PathBuf::from(mount[1]));
    group.ok_or("cgroup v2")
}

/// What is a machine's own before anything is installed.
fn furnish(root: &Path) {
    let users = format!("root:x:0:0::/root:/bin/sh\nsimpletuner:x:{USER}:{USER}::/home/simpletuner:/bin/sh\n");
    write(root, "etc/passwd", &users);
    write(root, "etc/group", &format!("root:x:0:\nsimpletuner:x:{USER}:\nvideo:x:44:\nrender:x:105:\n"));
    write(root, "etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    let units = root.join("etc/systemd/system");
    fs::create_dir_all(units.join("sockets.target.wants")).expect("a directory");
    for unit in UNITS {
        fs::copy(Path::new(SYSTEMD).with_file_name("system").join(unit), units.join(unit))
            .expect("a unit of systemd's");
    }
    let journal = units.join("sockets.target.wants/systemd-journald.socket");
    std::os::unix::fs::symlink("../systemd-journald.socket", journal).expect("a link");
    fs::create_dir_all(home(root)).expect("a directory");
    chown(home(root), Some(USER), Some(USER)).expect("an owner");
    let temporary = root.join("tmp");
    fs::create_dir_all(&temporary).expect("a directory");
    fs::set_permissions(temporary, Permissions::from_mode(0o1777)).expect("permissions");
}

/// Nothing of a test is left.
impl Drop for Machine {
    fn drop(&mut self) {
        match &self.place {
            Place::Made { init, .. } => end(*init, &self.group),
            Place::This => uninstall(),
        }
    }
}

/// Everything ends with process 1, and its groups can go.
fn end(init: i32, group: &Path) {
    if std::thread::panicking() {
        let target = format!("--target={init}");
        let _ = std::process::Command::new("nsenter").args(["--all", &target, "journalctl", "--no-pager"]).status();
    }
    // It may have ended before.
    let _ = kill(Pid::from_raw(init), Signal::SIGKILL);
    // It fails where this kernel is older than Linux 5.14.
    let _ = fs::write(group.join("cgroup.kill"), "1");
    for _ in 0..500 {
        remove(group);
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

fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path());
    }
    // It is still busy as long as one of its processes was not buried.
    let _ = fs::remove_dir(group);
}
