//! The server on PostgreSQL: killed before one of its writes to a file or to its database, then started again.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use nix::libc;
use nix::sys::signal::Signal;

use crate::canonical::canonical;
use crate::check::check_usable;
use crate::kills::{Killer, Kills, Outcome};
use crate::observation::Observation;
use crate::options::Options;
use crate::recorder::Recorder;
use crate::recording::SharedRecording;
use crate::server::{Server, Settings, TracedServer};
use crate::sweep::Findings;
use crate::tracer::{Call, Decision, Observer};
use crate::workload::{Step, Workload};

/// How many writes are tried by default.
const BOUND: usize = 24;
const THREADS: usize = 2;

pub fn run(options: &Options, scratch: &Path) -> Result<Findings> {
    let scratch = scratch.join("server-postgres");
    fs::create_dir(&scratch)?;
    let postgres = Postgres::start()?;
    let begun = Arc::new(AtomicUsize::new(0));
    let reference = run_workload(options, &postgres, &scratch.join("reference"), None, &begun)?;
    ensure!(reference.error.is_none(), "without a kill: {:?}", reference.error);
    let states: Vec<Observation> = reference.steps.iter().map(|step| canonical(&step.after)).collect();
    let points = begun.load(Ordering::SeqCst);
    let kills = Kills { part: "server-postgres", options, points, bound: BOUND, threads: THREADS };
    kills.run(&scratch.join("killed"), |point, directory| {
        let begun = Arc::new(AtomicUsize::new(0));
        let run = run_workload(options, &postgres, directory, Some(point), &begun)?;
        let server = Server::start(&run.settings, directory)?;
        let found = canonical(&Observation::of(&server.client)?);
        let mut violations = match (run.acknowledged.checked_sub(1), states.get(run.acknowledged)) {
            (Some(before), after) => found.violations(&states[before], after.unwrap_or(&states[before]), false),
            (None, _) => found.logs.keys().map(|job| format!("{job} was not submitted")).collect(),
        };
        violations.extend(check_usable(&server.client)?);
        drop(server);
        Ok(Outcome { was_killed: begun.load(Ordering::SeqCst) > point, violations })
    })
}

/// How far a run came.
struct Run {
    settings: Settings,
    steps: Vec<Step>,
    acknowledged: usize,
    error: Option<anyhow::Error>,
}

fn run_workload(
    options: &Options,
    postgres: &Postgres,
    root: &Path,
    at: Option<usize>,
    begun: &Arc<AtomicUsize>,
) -> Result<Run> {
    fs::create_dir(root)?;
    let database = postgres.create_database(at)?;
    let settings = Settings { dist: options.dist.clone(), variables: vec![("SIMPLETUNER_DATABASE_URL", database)] };
    let (recording, mut steps) = (SharedRecording::default(), Vec::new());
    let writes = DatabaseWrites {
        inner: Recorder::new(root, &recording),
        directory: postgres.directory.clone(),
        sockets: HashSet::new(),
    };
    let killer = Killer { inner: writes, at, begun: Arc::clone(begun) };
    let server = match TracedServer::start(&settings, root, killer) {
        Ok(server) => server,
        Err(error) => return Ok(Run { settings, steps, acknowledged: 0, error: Some(error) }),
    };
    let mut workload = Workload::new(&server.client, &recording, &mut steps);
    let error = workload.first_day().err();
    let acknowledged = workload.acknowledged;
    server.end(Signal::SIGKILL)?;
    Ok(Run { settings, steps, acknowledged, error })
}

/// Also observes what is written to the sockets of a database.
struct DatabaseWrites {
    inner: Recorder,
    /// Where the database has its socket.
    directory: PathBuf,
    sockets: HashSet<PathBuf>,
}

impl DatabaseWrites {
    /// Remembers a socket that is connected to the database.
    fn connect(&mut self, call: &Call) -> Result<()> {
        let address = call.memory(call.arguments[1], call.arguments[2])?;
        let directory = self.directory.as_os_str().as_encoded_bytes();
        if address.windows(directory.len()).any(|window| window == directory) {
            self.sockets.insert(call.target(call.descriptor(0))?);
        }
        Ok(())
    }
}

impl Observer for DatabaseWrites {
    fn enter(&mut self, call: &Call) -> Result<Decision> {
        if call.number == libc::SYS_connect {
            self.connect(call)?;
            return Ok(Decision::Ignore);
        }
        let decision = self.inner.enter(call)?;
        let sends = [libc::SYS_write, libc::SYS_writev, libc::SYS_sendto, libc::SYS_sendmsg].contains(&call.number);
        let is_database = || call.target(call.descriptor(0)).is_ok_and(|target| self.sockets.contains(&target));
        Ok(if decision == Decision::Ignore && sends && is_database() { Decision::Alone } else { decision })
    }

    fn is_watched(&self, number: i64) -> bool {
        number == libc::SYS_connect || self.inner.is_watched(number)
    }

    fn leave(&mut self, call: &Call, result: i64) -> Result<()> {
        self.inner.leave(call, result)
    }
}

/// The temporary PostgreSQL of `scripts/postgres`.
struct Postgres {
    shell: Child,
    address: String,
    directory: PathBuf,
}

impl Postgres {
    fn start() -> Result<Self> {
        let script = "cd \"$0\"; . scripts/lib.sh; . scripts/postgres; start_postgres fsync=off >&2; \
                      echo \"$SIMPLETUNER_TEST_POSTGRES\"; read -r _ || true; stop_postgres";
        let (reader, writer) = std::io::pipe()?;
        let mut command = Command::new("bash");
        command.args(["-c", script]).arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let shell = command.stdin(Stdio::piped()).stdout(writer).spawn()?;
        drop(command);
        let mut postgres = Self { shell, address: String::new(), directory: PathBuf::new() };
        postgres.address = read_line(reader)?;
        let (_, directory) = postgres.address.split_once("host=").context("the directory of its socket")?;
        postgres.directory = directory.into();
        Ok(postgres)
    }

    /// Creates an empty database; returns its address.
    fn create_database(&self, number: Option<usize>) -> Result<String> {
        let name = number.map_or_else(|| "reference".to_owned(), |number| format!("killed_{number}"));
        let create = format!("CREATE DATABASE {name}");
        let status = Command::new("psql").args(["-q", &self.address, "-c", &create]).status()?;
        ensure!(status.success(), "psql could not create a database");
        Ok(self.address.replacen("/postgres?", &format!("/{name}?"), 1))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.shell.stdin.take() {
            // It may have ended already.
            let _ = stdin.write_all(b"\n");
        }
        let _ = self.shell.wait();
    }
}

fn read_line(reader: PipeReader) -> Result<String> {
    let mut line = String::new();
    if BufReader::new(reader).read_line(&mut line)? == 0 {
        bail!("PostgreSQL did not start");
    }
    Ok(line.trim().to_owned())
}
