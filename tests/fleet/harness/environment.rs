//! A broken environment of an agent: network, name resolution, clock. These need root and Linux tools, and affect the
//! started processes only.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::process::Command;

/// Returns whether tests may create namespaces here; prints a note if not.
pub fn can_make_namespaces() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        eprintln!("not tested: network and mount namespaces need root");
    }
    is_root
}

/// Returns the command run by another one: `ip netns exec …`.
fn wrap_command(wrapper: &[&str], inner: &Command) -> Command {
    let inner = inner.as_std();
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A virtual cable between this host, with the server, and the agent's network namespace.
pub struct VirtualCable {
    name: String,
    number: u8,
}

impl VirtualCable {
    /// Creates a connected cable.
    pub async fn new() -> Self {
        static NUMBER: AtomicU8 = AtomicU8::new(1);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let cable = Self { name: format!("st{}-{number}", std::process::id()), number };
        let (name, interface) = (cable.name.as_str(), cable.server_interface());
        ip(&["netns", "add", name]).await;
        ip(&["link", "add", &interface, "type", "veth", "peer", "name", "far", "netns", name]).await;
        ip(&["addr", "add", &format!("{}/30", cable.server_address()), "dev", &interface]).await;
        ip(&["link", "set", &interface, "up"]).await;
        cable.run_at_agent(&["addr", "add", &format!("{}/30", cable.agent_address()), "dev", "far"]).await;
        cable.run_at_agent(&["link", "set", "far", "up"]).await;
        cable.run_at_agent(&["link", "set", "lo", "up"]).await;
        cable
    }

    fn server_interface(&self) -> String {
        format!("{}e", self.name)
    }

    /// Returns the server's address.
    pub fn server_address(&self) -> Ipv4Addr {
        // Reserved for documentation (RFC 5737).
        Ipv4Addr::new(203, 0, 113, self.number * 4 + 1)
    }

    fn agent_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(203, 0, 113, self.number * 4 + 2)
    }

    async fn run_at_agent(&self, args: &[&str]) {
        ip(&[&["-n", self.name.as_str()], args].concat()).await;
    }

    /// Returns the command run at the agent's end.
    pub fn agent_command(&self, command: &Command) -> Command {
        wrap_command(&["ip", "netns", "exec", &self.name], command)
    }

    /// Drops packets in both directions silently.
    pub async fn drop_all(&self) {
        // At the server's end, so that the agent's host sees no error.
        ip(&[
            "neigh",
            "replace",
            &self.agent_address().to_string(),
            "lladdr",
            UNUSED_MAC,
            "dev",
            &self.server_interface(),
        ])
        .await;
        self.drop_from_agent().await;
    }

    /// Drops packets from the agent.
    pub async fn drop_from_agent(&self) {
        self.run_at_agent(&[
            "neigh",
            "replace",
            &self.server_address().to_string(),
            "lladdr",
            UNUSED_MAC,
            "dev",
            "far",
        ])
        .await;
    }

    /// Restores the connection.
    pub async fn restore(&self) {
        // A deleted entry is resolved again; it may not exist.
        let _ = run("ip", &["neigh", "del", &self.agent_address().to_string(), "dev", &self.server_interface()]).await;
        let (name, server) = (self.name.as_str(), self.server_address().to_string());
        let _ = run("ip", &["-n", name, "neigh", "del", &server, "dev", "far"]).await;
    }
}

/// A MAC address that no interface has.
const UNUSED_MAC: &str = "02:00:00:00:00:99";

impl Drop for VirtualCable {
    fn drop(&mut self) {
        // The cable is removed with the namespace.
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

/// A hosts file, which is empty at first.
pub struct HostsFile(PathBuf);

impl HostsFile {
    /// Creates the file in this directory.
    pub fn new(directory: &Path) -> Self {
        let names = Self(directory.join("hosts"));
        std::fs::write(&names.0, "").expect("a file of names");
        names
    }

    /// Maps a name to this host.
    pub fn add(&self, name: &str) {
        std::fs::write(&self.0, format!("127.0.0.1 {name}\n")).expect("a file of names");
    }

    /// Returns the command with this file as its only name resolution.
    pub fn apply_to(&self, command: &Command) -> Command {
        let file = self.0.display();
        let script = format!("mount --bind {file} /etc/hosts && mount --bind {file} /etc/resolv.conf && exec \"$@\"");
        wrap_command(&["unshare", "--mount", "sh", "-c", &script, "sh"], command)
    }
}

/// A wrong clock, with the library of Debian's package `faketime`.
pub struct FakeTime(PathBuf);

impl FakeTime {
    /// A clock with this offset in seconds, for processes that start with it.
    pub fn new(directory: &Path, seconds: i32) -> Self {
        let clock = Self(directory.join("clock"));
        clock.set_offset(seconds);
        clock
    }

    /// Changes the offset to this many seconds.
    pub fn set_offset(&self, seconds: i32) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}")).and_then(|()| std::fs::rename(new, &self.0)).expect("a clock");
    }

    /// Makes the command use it. Monotonic clocks stay correct, as on a host whose time is set.
    pub fn apply_to(&self, command: &mut Command) {
        let library = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
            .map(|directory| Path::new(directory).join("faketime/libfaketimeMT.so.1"));
        let library = library.iter().find(|path| path.exists()).expect("faketime is installed; scripts/setup does it");
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &self.0);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}
