//! The server on SQLite: its directory after a crash at each of its file operations.

use std::path::Path;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use crate::check::{Expectation, check};
use crate::disk::Disk;
use crate::options::Options;
use crate::recorder::Recorder;
use crate::recording::SharedRecording;
use crate::server::{Settings, TracedServer};
use crate::states::killed;
use crate::sweep::{Findings, Sweep, print_operations};
use crate::workload::{Step, Workload};

/// What the server did, and what its users saw.
pub struct Record {
    pub recording: SharedRecording,
    pub steps: Vec<Step>,
}

/// Runs the workload on three days: the first ends with a clean stop, the others with a kill.
pub fn record(settings: &Settings, root: &Path) -> Result<Record> {
    let (recording, mut steps) = (SharedRecording::default(), Vec::new());
    let start = |settings| TracedServer::start(settings, root, Recorder::new(root, &recording));
    let server = start(settings)?;
    Workload::new(&server.client, &recording, &mut steps).first_day()?;
    server.end(Signal::SIGTERM)?;
    let server = start(settings)?;
    let job = Workload::new(&server.client, &recording, &mut steps).second_day()?;
    server.end(Signal::SIGKILL)?;
    let limited =
        Settings { variables: vec![("SIMPLETUNER_ARTIFACT_MAX_TOTAL", "1KiB".to_owned())], ..settings.clone() };
    let server = start(&limited)?;
    Workload::new(&server.client, &recording, &mut steps).third_day(&job)?;
    server.end(Signal::SIGKILL)?;
    ensure_complete(&recording, root)?;
    Ok(Record { recording, steps })
}

/// The recorded operations lead to the directory that the program has left.
pub fn ensure_complete(recording: &SharedRecording, root: &Path) -> Result<()> {
    let mut disk = Disk::default();
    let operations = &recording.lock().operations;
    for operation in operations {
        disk.apply(operation);
    }
    let differences = killed(&disk, operations.len()).differences(root)?;
    ensure!(differences.is_empty(), "the recording is incomplete: {}", differences.join(", "));
    Ok(())
}

/// How many operations are swept by default.
const BOUND: usize = 200;
/// Each starts servers.
const THREADS: usize = 2;
/// Files whose flushes a check of the checks ignores: acknowledged changes must then be missing.
const NEEDED_FLUSHES: [&str; 2] = ["orchestrator.db-wal", ".log"];

pub fn run(options: &Options, scratch: &Path) -> Result<Vec<Findings>> {
    let settings = Settings { dist: options.dist.clone(), variables: Vec::new() };
    let root = scratch.join("recorded");
    std::fs::create_dir(&root)?;
    let Record { recording, steps } = record(&settings, &root)?;
    let recording = recording.lock();
    if options.list {
        print_operations(&recording.operations);
        return Ok(Vec::new());
    }
    let run = |part: &str, needed_flush| {
        let sweep = Sweep {
            part,
            options,
            operations: &recording.operations,
            first: 0,
            bound: BOUND,
            needed_flush,
            survivor: None,
            expectation: &|prefix| steps.iter().filter(|step| step.acknowledged <= prefix).count(),
            threads: THREADS,
        };
        sweep.run(&scratch.join(part), |directory, state| {
            check(&settings, directory, &Expectation::at(&steps, state.prefix))
        })
    };
    let mut all = vec![run("server-sqlite", None)?];
    for file in NEEDED_FLUSHES.iter().filter(|_| options.ignore_flush.is_none()) {
        all.push(run(&format!("server-sqlite without flushes of {file} (must fail)"), Some(file))?);
    }
    Ok(all)
}
