//! Targets outside the sandboxes: without them, a trial would fail even without a sandbox.

use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::worker::sandbox::users::FIRST_USER;
use crate::worker::tests::test_host::TestHost;

/// A user ID that no machine is expected to use.
const OTHER_UID: u32 = 54_321;

/// A process outside the sandboxes, and the resources it has until it exits.
pub struct AttackTargets {
    dir: TempDir,
    process: Child,
    terminal: String,
}

impl AttackTargets {
    /// The process has the same user as the first job's trainer, if trainers have their own users.
    pub fn create(level: &str) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
        let home = dir.path().join("home");
        std::fs::create_dir(&home)?;
        std::fs::write(home.join("diary"), "x")?;
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700))?;
        let (own_uid, is_root) = (nix::unistd::geteuid().as_raw(), nix::unistd::geteuid().is_root());
        if is_root {
            chown(&home, Some(OTHER_UID), Some(OTHER_UID))?;
        }
        let user = if is_root && level == "full" { FIRST_USER.uid + 1 } else { own_uid };
        // The trainer has no capabilities, and could not access a process that has some.
        let as_trainers = "setpriv --bounding-set -all --inh-caps -all python3";
        let launcher = if is_root && user == own_uid { as_trainers } else { "python3" };
        let mut words = launcher.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .args(["-c", include_str!("outside.py")])
            .arg(dir.path().join("socket"))
            .arg(name(dir.path()));
        let mut process = command.arg(user.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut line)?;
        Ok(Self { dir, process, terminal: line.trim().to_owned() })
    }

    /// Creates the agent's own files, and a setuid program.
    pub fn install_agent_files(host: &TestHost) -> io::Result<()> {
        std::fs::create_dir(host.path().join(".ssh"))?;
        for name in [".ssh/id_ed25519", "worker.env"] {
            std::fs::write(host.path().join(name), "x")?;
        }
        std::fs::copy("/usr/bin/id", host.trainer_dir().join("id"))?;
        std::fs::set_permissions(host.trainer_dir().join("id"), std::fs::Permissions::from_mode(0o4755))
    }

    /// The first lines of a trainer's program, which define the targets and `extra`.
    pub fn program_line(&self, host: &TestHost, extra: &Value) -> String {
        let facts = json!({
            "home": self.dir.path().join("home"), "socket": self.dir.path().join("socket"), "name": name(self.dir.path()),
            "pid": self.process.id(), "terminal": self.terminal, "shared": host.trainer_dir(), "more": extra,
        });
        format!("import json\noutside = json.loads({:?})\n", facts.to_string())
    }

    /// The same without any targets.
    pub fn empty_line() -> String {
        let facts = json!({
            "home": "/nowhere", "socket": "/nowhere", "name": "nobody", "pid": i32::MAX, "terminal": "/nowhere",
            "shared": "/nowhere", "more": {},
        });
        format!("outside = {facts}\n")
    }
}

/// A unique name.
fn name(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().replace('.', "simpletuner")
}

impl Drop for AttackTargets {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Its exit status is not needed.
        let _ = self.process.wait();
    }
}
