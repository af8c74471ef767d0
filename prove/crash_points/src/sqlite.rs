//! The server on SQLite: its directory after a crash at each of its file operations.

use std::path::Path;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use crate::check::{Expectation, check};
use crate::disk::Disk;
use crate::options::Options;
use crate::recorder::{Recorder, SharedRecording};
use crate::server::{Settings, TracedServer};
use crate::states::killed;
use crate::sweep::{Findings, Sweep};
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

/// Files whose flushes a check of the checks ignores: acknowledged changes must then be missing.
const NEEDED_FLUSHES: [&str; 2] = ["orchestrator.db-wal", ".log"];

pub fn run(options: &Options, scratch: &Path) -> Result<Vec<Findings>> {
    let settings = Settings { dist: options.dist.clone(), variables: Vec::new() };
    let root = scratch.join("recorded");
    std::fs::create_dir(&root)?;
    let Record { recording, steps } = record(&settings, &root)?;
    let recording = recording.lock();
    let run = |part: String, ignored_flush: Option<String>, max_failures| {
        let directory = scratch.join(&part);
        std::fs::create_dir(&directory)?;
        let sweep = Sweep {
            part,
            operations: &recording.operations,
            selection: options.selection(recording.operations.len()),
            ignored_flush,
            posix: options.posix,
            max_failures,
            expectation: &|prefix| steps.iter().filter(|step| step.acknowledged <= prefix).count(),
        };
        sweep.run(&directory, |directory, state| check(&settings, directory, &Expectation::at(&steps, state.prefix)))
    };
    let mut all = vec![run("server-sqlite".to_owned(), options.ignore_flush.clone(), options.max_failures)?];
    for file in NEEDED_FLUSHES.iter().filter(|_| options.ignore_flush.is_none()) {
        let findings =
            run(format!("server-sqlite without flushes of {file} (must fail)"), Some((*file).to_owned()), 1)?;
        all.push(Findings { must_fail: true, ..findings });
    }
    Ok(all)
}
