//! Debian's `PgBouncer` between servers and the PostgreSQL of the tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use tokio::process::Command;

use super::proxy::free_port;
use super::{Program, wait_until};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

pub struct PgBouncer {
    program: Program,
    port: u16,
    dir: TempDir,
}

impl PgBouncer {
    /// Starts it for the PostgreSQL of this database in this mode, with default settings otherwise.
    pub async fn start(database: &str, mode: &str) -> Self {
        let dir = TempDir::with_prefix("simpletuner-pooler-").expect("a temporary directory");
        let (_, socket) = database.split_once("host=").expect("the tests' PostgreSQL has a socket and no port");
        let port = free_port();
        // It does not run as root.
        let user = if nix::unistd::geteuid().is_root() { "user = postgres\n" } else { "" };
        let settings = format!(
            "[databases]\n* = host={socket} user=simpletuner\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n{user}"
        );
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("an open directory");
        fs::write(dir.path().join("pgbouncer.ini"), settings).expect("a file");
        let pooler = Self { program: start_program(dir.path()), port, dir };
        pooler.wait_until_ready().await;
        pooler
    }

    /// Restarts it, as after a reboot.
    pub async fn restart(self) -> Self {
        let Self { program, port, dir } = self;
        program.kill().await;
        let pooler = Self { program: start_program(dir.path()), port, dir };
        pooler.wait_until_ready().await;
        pooler
    }

    /// Returns the URL of a database through the pooler.
    pub fn address(&self, database: &str) -> String {
        let name = database.split_once('?').and_then(|(address, _)| address.rsplit_once('/')).map(|(_, name)| name);
        format!("postgres://simpletuner@127.0.0.1:{}/{}", self.port, name.expect("a database"))
    }

    /// Returns its log.
    pub fn output(&self) -> String {
        self.program.output()
    }

    async fn wait_until_ready(&self) {
        let at = ("127.0.0.1", self.port);
        wait_until("the pooler to listen", async || tokio::net::TcpStream::connect(at).await.ok()).await;
    }
}

fn start_program(dir: &Path) -> Program {
    assert!(Path::new(PROGRAM).exists(), "{PROGRAM} is missing: `scripts/setup browser` installs it");
    let mut command = Command::new(PROGRAM);
    command.arg(dir.join("pgbouncer.ini"));
    Program::start(command, dir.join("pooler.log"))
}
