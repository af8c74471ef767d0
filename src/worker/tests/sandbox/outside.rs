//! What lies outside of the sandboxes for a trainer to reach for: without it, a trial would hold where nothing confines.

use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::users::FIRST_USER;
use crate::tests::test_host::TestHost;

/// Of a user who has no name on any machine.
const SOMEBODY: u32 = 54_321;

/// A process outside, and what it holds until it ends.
pub struct AttackTargets {
    dir: TempDir,
    process: Child,
    terminal: String,
}

impl AttackTargets {
    /// Of the same user as the trainer of the first job, where trainers have users of their own.
    pub fn create(level: &str) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
        let home = dir.path().join("home");
        std::fs::create_dir(&home)?;
        std::fs::write(home.join("diary"), "x")?;
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700))?;
        let (own, is_root) = (nix::unistd::geteuid().as_raw(), nix::unistd::geteuid().is_root());
        if is_root {
            chown(&home, Some(SOMEBODY), Some(SOMEBODY))?;
        }
        let user = if is_root && level == "full" { FIRST_USER.uid + 1 } else { own };
        // The trainer has no capabilities, and a process that has more than another is out of its reach for that alone.
        let as_trainers = "setpriv --bounding-set -all --inh-caps -all python3";
        let begun = if is_root && user == own { as_trainers } else { "python3" };
        let mut words = begun.split(' ');
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

    /// Puts the agent's own files where it has them, and a program that makes its caller root.
    pub fn install_agent_files(host: &TestHost) -> io::Result<()> {
        std::fs::create_dir(host.path().join(".ssh"))?;
        for name in [".ssh/id_ed25519", "worker.env"] {
            std::fs::write(host.path().join(name), "x")?;
        }
        std::fs::copy("/usr/bin/id", host.trainer_dir().join("id"))?;
        std::fs::set_permissions(host.trainer_dir().join("id"), std::fs::Permissions::from_mode(0o4755))
    }

    /// The first line of the program of a trainer that is to know of it, and of `more`.
    pub fn program_line(&self, host: &TestHost, more: &Value) -> String {
        let all = json!({
            "home": self.dir.path().join("home"), "socket": self.dir.path().join("socket"), "name": name(self.dir.path()),
            "pid": self.process.id(), "terminal": self.terminal, "shared": host.trainer_dir(), "more": more,
        });
        format!("import json\noutside = json.loads({:?})\n", all.to_string())
    }

    /// The same where there is nothing.
    pub fn empty_line() -> String {
        let all = json!({
            "home": "/nowhere", "socket": "/nowhere", "name": "nobody", "pid": i32::MAX, "terminal": "/nowhere",
            "shared": "/nowhere", "more": {},
        });
        format!("outside = {all}\n")
    }
}

/// A name that nothing else has.
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
