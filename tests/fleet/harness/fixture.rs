//! What a server and agents of an earlier version have left behind, made by that version's own programs
//! (`scripts/fixture`).

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sqlx::{Connection, PgConnection};

use super::{TestFleet, WorkerHost, new_database, repository};

/// The version before.
const VERSION: &str = "0.1.0-7c6541cf";

/// The boot of the fixture's hosts.
const OTHER_BOOT: &str = "00000000-0000-0000-0000-000000000000";

/// The facts about a fixture, as its server has told them.
pub struct Fixture {
    facts: Value,
}

impl Fixture {
    /// A fact that is a text.
    pub fn text(&self, pointer: &str) -> &str {
        self.fact(pointer).as_str().unwrap_or_else(|| panic!("{pointer} is no text"))
    }

    pub fn fact(&self, pointer: &str) -> &Value {
        self.facts.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"))
    }

    /// The ID of the job that had this state.
    pub fn job(&self, state: &str) -> &str {
        self.text(&format!("/jobs/{state}"))
    }

    /// Lets a host be one that has not restarted since its agent was killed; all others have.
    pub fn continue_boot(&self, fleet: &TestFleet, name: &str) {
        let boot = read(Path::new("/proc/sys/kernel/random/boot_id"));
        let attempts = fleet.path().join(name).join("work/jobs").join(self.job("ended")).join("1");
        let mut changed = 0;
        for file in attempts.read_dir().expect("an attempt").flatten().map(|entry| entry.path()) {
            if file.extension().is_some_and(|extension| extension == "json") {
                let text = read(&file);
                changed += text.matches(OTHER_BOOT).count();
                std::fs::write(&file, text.replace(OTHER_BOOT, boot.trim())).expect("a file");
            }
        }
        assert!(changed > 0, "the attempt of {name} does not say of which boot it is");
    }

    /// The host of a worker, with the work directory of its older agent.
    pub fn host(&self, fleet: &TestFleet, name: &str) -> WorkerHost {
        WorkerHost::new(fleet, name, "persistent", self.fact(&format!("/workers/{name}")))
    }
}

impl TestFleet {
    /// Like `start`, on what the version before has left; the older agents are not started.
    pub async fn start_from_fixture() -> (Self, Fixture) {
        let (mut fleet, fixture) = Self::unpack_fixture().await;
        fleet.start_server().await;
        (fleet, fixture)
    }

    /// Like `start_from_fixture`; the server is not started yet.
    pub async fn unpack_fixture() -> (Self, Fixture) {
        let engine = if Self::uses_postgres() { "postgres" } else { "sqlite" };
        let database = if Self::uses_postgres() { Some(new_database().await) } else { None };
        let fleet = Self::prepare(database, &[]).await;
        unpack(&repository(&format!("tests/fixtures/{VERSION}/{engine}.tar.xz")), fleet.path());
        if let Some(database) = &fleet.database {
            load(database, read(&fleet.path().join("database.sql")).leak()).await;
        }
        let facts = serde_json::from_str(&read(&fleet.path().join("facts.json"))).expect("JSON");
        (fleet, Fixture { facts })
    }
}

fn unpack(archive: &Path, directory: &Path) {
    let unpacked = Command::new("tar").arg("--extract").arg("--file").arg(archive).current_dir(directory).status();
    assert!(unpacked.is_ok_and(|status| status.success()), "tar cannot unpack {}", archive.display());
}

async fn load(database: &str, dump: &'static str) {
    let mut connection = PgConnection::connect(database).await.expect("a database");
    sqlx::raw_sql(dump).execute(&mut connection).await.expect("a dump");
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
