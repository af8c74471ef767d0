//! What is around an agent, when it is not as it should be: its cable, its names, its clock. These need root and Linux's
//! own tools, and take nothing from anybody else: namespaces and clocks are of one process.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::process::Command;

/// Whether tests may make namespaces here; who runs them as somebody else is told.
pub fn are_ours() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("not tested: network and mount namespaces need root");
    }
    root
}

/// The same command, run by another one: `ip netns exec …`.
fn within(wrapper: &[&str], inner: &Command) -> Command {
    let inner = inner.as_std();
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A network of two: the server's end is here, the agent's in a namespace of its own, and a cable between them.
pub struct Cable {
    name: String,
    number: u8,
}

impl Cable {
    /// Plugged in.
    pub async fn new() -> Self {
        static NUMBER: AtomicU8 = AtomicU8::new(1);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let cable = Self { name: format!("st{}-{number}", std::process::id()), number };
        let (name, own) = (cable.name.as_str(), cable.own_end());
        ip(&["netns", "add", name]).await;
        ip(&["link", "add", &own, "type", "veth", "peer", "name", "far", "netns", name]).await;
        ip(&["addr", "add", &format!("{}/30", cable.server()), "dev", &own]).await;
        ip(&["link", "set", &own, "up"]).await;
        cable.far(&["addr", "add", &format!("{}/30", cable.agent()), "dev", "far"]).await;
        cable.far(&["link", "set", "far", "up"]).await;
        cable.far(&["link", "set", "lo", "up"]).await;
        cable
    }

    fn own_end(&self) -> String {
        format!("{}e", self.name)
    }

    /// The server's address.
    pub fn server(&self) -> Ipv4Addr {
        // For documentation only (RFC 5737), so it is nobody's.
        Ipv4Addr::new(203, 0, 113, self.number * 4 + 1)
    }

    fn agent(&self) -> Ipv4Addr {
        Ipv4Addr::new(203, 0, 113, self.number * 4 + 2)
    }

    async fn far(&self, args: &[&str]) {
        ip(&[&["-n", self.name.as_str()], args].concat()).await;
    }

    /// The same command at the far end.
    pub fn at_the_far_end(&self, command: &Command) -> Command {
        within(&["ip", "netns", "exec", &self.name], command)
    }

    /// What is sent either way is lost, and nobody is told.
    pub async fn pull_out(&self) {
        // At the server's end, so that the agent's host has no error to see.
        ip(&["neigh", "replace", &self.agent().to_string(), "lladdr", NOBODY, "dev", &self.own_end()]).await;
        self.lose_what_the_agent_sends().await;
    }

    /// What the agent sends is lost.
    pub async fn lose_what_the_agent_sends(&self) {
        self.far(&["neigh", "replace", &self.server().to_string(), "lladdr", NOBODY, "dev", "far"]).await;
    }

    /// As at first.
    pub async fn plug_in(&self) {
        // Whose address is forgotten is asked for again. An entry that is not there is as good.
        let _ = run("ip", &["neigh", "del", &self.agent().to_string(), "dev", &self.own_end()]).await;
        let (name, server) = (self.name.as_str(), self.server().to_string());
        let _ = run("ip", &["-n", name, "neigh", "del", &server, "dev", "far"]).await;
    }
}

/// A card's address that nobody has.
const NOBODY: &str = "02:00:00:00:00:99";

impl Drop for Cable {
    fn drop(&mut self) {
        // The cable goes with the namespace.
        let _ = std::process::Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

async fn ip(args: &[&str]) {
    let status = run("ip", args).await.expect("iproute2 is installed");
    assert!(status.success(), "ip {} failed", args.join(" "));
}

async fn run(program: &str, args: &[&str]) -> std::io::Result<std::process::ExitStatus> {
    let mut command = Command::new(program);
    command.args(args).stderr(std::process::Stdio::null()).status().await
}

/// A host's file of names, in which nobody stands at first.
pub struct Names(PathBuf);

impl Names {
    /// In this directory.
    pub fn new(directory: &Path) -> Self {
        let names = Self(directory.join("hosts"));
        std::fs::write(&names.0, "").expect("a file of names");
        names
    }

    /// This name is now this machine's.
    pub fn know(&self, name: &str) {
        std::fs::write(&self.0, format!("127.0.0.1 {name}\n")).expect("a file of names");
    }

    /// The same command, for which these are the names, and which has nobody else to ask.
    pub fn for_(&self, command: &Command) -> Command {
        let file = self.0.display();
        let script = format!("mount --bind {file} /etc/hosts && mount --bind {file} /etc/resolv.conf && exec \"$@\"");
        within(&["unshare", "--mount", "sh", "-c", &script, "sh"], command)
    }
}

/// A clock that is wrong, by the library of Debian's package `faketime`.
pub struct Clock(PathBuf);

impl Clock {
    /// Wrong by so many seconds, for who starts with it.
    pub fn wrong_by(directory: &Path, seconds: i32) -> Self {
        let clock = Self(directory.join("clock"));
        clock.step_to(seconds);
        clock
    }

    /// From now on it is wrong by so many seconds.
    pub fn step_to(&self, seconds: i32) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}")).and_then(|()| std::fs::rename(new, &self.0)).expect("a clock");
    }

    /// The command goes by it. Clocks that only measure are right, as on a host whose time is set.
    pub fn rule(&self, command: &mut Command) {
        let library = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
            .map(|directory| Path::new(directory).join("faketime/libfaketimeMT.so.1"));
        let library = library.iter().find(|path| path.exists()).expect("faketime is installed; scripts/setup does it");
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &self.0);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}
