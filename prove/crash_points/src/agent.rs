//! The host of an agent: its directory after a crash at each file operation of the agent, its supervisor and its
//! trainer. The server is on another host and does not crash.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::client::Client;
use crate::damage::damaged_states;
use crate::host::{
    Agent, AgentSettings, OUTPUT, OUTPUT_CONTENT, add_worker, full_log, kill_all_that_mention, submit, wait_for_end,
};
use crate::operation::Operation;
use crate::options::Options;
use crate::pool::Pool;
use crate::recorder::Recorder;
use crate::recording::SharedRecording;
use crate::server::{Server, Settings, TracedServer};
use crate::sqlite::ensure_complete;
use crate::states::CrashState;
use crate::sweep::{Findings, Sweep, print_failure, print_operations};
use crate::tracer::{Follow, TracedProgram};
use crate::wait::wait_for;

/// The server's directory, and the agent's.
const SERVER: &str = "server";
const HOST: &str = "host";
/// What a crashed host had as its boot ID, which differs after a restart.
const OTHER_BOOT: &str = "00000000-0000-4000-8000-000000000000";

/// How long a server waits for an agent that has lost its identity in a crash.
const HEARTBEAT_TIMEOUT: &str = "4";

/// One job, from the first start of its worker's agent.
pub struct Record {
    pub recording: SharedRecording,
    pub settings: Settings,
    pub agent: AgentSettings,
    pub job: String,
    /// How many operations had ended when the agent started.
    pub started: usize,
    /// How many operations had ended when the job was accepted.
    pub submitted: usize,
}

pub fn record(options: &Options, scratch: &Path) -> Result<Record> {
    let root = scratch.join("recorded");
    for directory in [root.clone(), root.join(SERVER), root.join(HOST)] {
        fs::create_dir(directory)?;
    }
    let recording = SharedRecording::default();
    recording.add_directories(&[SERVER, HOST]);
    let settings = Settings {
        dist: options.dist.clone(),
        variables: vec![("SIMPLETUNER_HEARTBEAT_TIMEOUT", HEARTBEAT_TIMEOUT.to_owned())],
    };
    let server = TracedServer::start(&settings, &root.join(SERVER), Recorder::new(&root, &recording))?;
    let agent = AgentSettings::new(&options.dist, &scratch.join("trainer"), add_worker(&server.client)?)?;
    let started = recording.length();
    let program = agent.program(&root.join(HOST), server.client.url());
    let log = fs::File::create(scratch.join("recorded-agent.log"))?;
    let host = TracedProgram::start(&program, log, Follow::Processes, Recorder::new(&root, &recording))?;
    let job = submit(&server.client, "submit")?;
    let submitted = recording.lock().responses.get("submit").copied().context("the response to the submit")?;
    let attempt = root.join(HOST).join("jobs").join(&job).join("1");
    let delivered = wait_for("the delivery", || Ok(is_delivered(&attempt) || !host.is_running()));
    let ended = server.client.get(&format!("/api/queue/{job}"))?;
    // It may have ended already.
    let _ = nix::sys::signal::kill(host.pid, Signal::SIGKILL);
    kill_all_that_mention(&root.join(HOST).to_string_lossy());
    host.wait()?;
    server.end(Signal::SIGKILL)?;
    delivered?;
    ensure!(ended["status"] == "completed", "the recorded job did not complete");
    ensure_complete(&recording, &root)?;
    Ok(Record { recording, settings, agent, job, started, submitted })
}

fn is_delivered(attempt: &Path) -> bool {
    let state = fs::read(attempt.join("state.json")).unwrap_or_default();
    serde_json::from_slice::<Value>(&state).is_ok_and(|state| state["delivered"] == true)
}

/// Loses the host at each operation.
pub fn run_lost(options: &Options, scratch: &Path) -> Result<Findings> {
    let scratch = scratch.join("agent-lost");
    fs::create_dir(&scratch)?;
    let record = record(options, &scratch)?;
    let recording = record.recording.lock();
    if options.list {
        print_operations(&recording.operations);
    }
    let sweep = Sweep {
        part: "agent-lost",
        options,
        operations: &recording.operations,
        first: record.started,
        bound: BOUND,
        needed_flush: None,
        survivor: Some(SERVER.into()),
        expectation: &|prefix| usize::from(record.submitted <= prefix),
        threads: THREADS,
    };
    sweep.run(&scratch.join("states"), |directory, state| {
        let job = (record.submitted <= state.prefix).then_some(record.job.as_str());
        check(&record, directory, |client, host, violations| {
            let first = job.map_or_else(|| submit(client, "first"), |job| Ok(job.to_owned()))?;
            // The slot is free again.
            let next = submit(client, "next")?;
            check_job(client, host, &first, violations)?;
            check_job(client, host, &next, violations)
        })
    })
}

/// Damages each file of a host with a running trainer, and of one whose trainer has ended.
pub fn run_damaged(options: &Options, scratch: &Path) -> Result<Findings> {
    let started = Instant::now();
    let scratch = scratch.join("agent-damaged");
    fs::create_dir(&scratch)?;
    let record = record(options, &scratch)?;
    let operations = &record.recording.lock().operations;
    let is_exit =
        |operation: &Operation| matches!(operation, Operation::Rename { to, .. } if to.ends_with("exit.json"));
    let exit = operations.iter().position(is_exit).context("the trainer's exit was not recorded")?;
    // Before and after its end is recorded.
    let states = damaged_states(operations, Path::new(SERVER), &[exit, exit + 1]);
    let (part, points) = ("agent-damaged", states.len());
    let selection = options.selection(points, DAMAGE_BOUND);
    let selected = states.into_iter().zip(0..).filter(|(_, number)| selection.contains(*number));
    let selected: Vec<_> = selected.map(|(state, _)| state).collect();
    let tried = selected.len();
    let report = |state: &CrashState, violations: &[String], directory: &Path| {
        print_failure(part, &format!("after operation {}: {}", state.prefix, state.variant), violations, directory);
    };
    let pool = Pool {
        scratch: &scratch.join("states"),
        threads: THREADS,
        max_failures: options.max_failures,
        report: &report,
    };
    let produce = |send: &dyn Fn(CrashState) -> bool| {
        // It stops after too many failures.
        let _ = selected.into_iter().all(send);
    };
    let failures = pool.run(produce, |directory, _| {
        check(&record, directory, |client, host, violations| {
            wait_for_end(client, &record.job)?;
            check_job(client, host, &submit(client, "next")?, violations)
        })
    })?;
    let duration = started.elapsed();
    let part = part.to_owned();
    Ok(Findings { part, points, selection, states: tried, distinct: tried, failures, duration, must_fail: false })
}

/// How many operations are swept, and how many damages are tried, by default.
const BOUND: usize = 16;
const DAMAGE_BOUND: usize = 60;
/// Most of a check is waiting.
const THREADS: usize = 24;

/// Starts server and agent; returns what is wrong.
fn check(
    record: &Record,
    root: &Path,
    check_jobs: impl Fn(&Client, &Path, &mut Vec<String>) -> Result<()>,
) -> Result<Vec<String>> {
    let host = root.join(HOST);
    change_boot_id(&host)?;
    let server = Server::start(&record.settings, &root.join(SERVER))?;
    let log = root.join("agent.log");
    let mut agent = Agent::start(&record.agent, &host, server.client.url(), &log)?;
    let mut violations = Vec::new();
    if let Err(error) = check_jobs(&server.client, &host, &mut violations) {
        violations.push(format!("{error:#}"));
    }
    if !agent.is_running()? {
        violations.push("the agent has ended".to_owned());
    }
    drop(agent);
    if !violations.is_empty() {
        violations.push(last_lines(&fs::read_to_string(&log)?));
    }
    Ok(violations)
}

/// The end of an agent's messages.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(6)..].join("\n  ")
}

/// The job completes, its logs and its file are what its trainers have written, and no attempt leaves anything.
pub fn check_job(client: &Client, host: &Path, job: &str, violations: &mut Vec<String>) -> Result<()> {
    let ended = wait_for_end(client, job)?;
    if ended["status"] != "completed" {
        violations.push(format!("the job has not completed: {ended}"));
    }
    for attempt in ended["attempts"].as_array().context("attempts")? {
        let number = attempt["attempt"].as_u64().context("a number")?;
        let log = client.bytes(&format!("/api/queue/{job}/logs?raw=1&attempt={number}"))?;
        let (full, is_complete) = (full_log(number).into_bytes(), attempt["outcome"] == "completed");
        // What a trainer has not flushed may read as zeros after a crash of its host.
        let is_as_sent = log.iter().zip(&full).all(|(found, sent)| found == sent || *found == 0);
        if log.len() > full.len() || !is_as_sent || (is_complete && log != full) {
            let text = String::from_utf8_lossy(&log);
            violations.push(format!("the log of attempt {number} ({}) is {text:?}", attempt["outcome"]));
        }
        if is_complete && client.bytes(&format!("/api/queue/{job}/artifacts/{OUTPUT}"))? != OUTPUT_CONTENT {
            violations.push(format!("{OUTPUT} of attempt {number} is not what its trainer has written"));
        }
    }
    wait_for("the removal of what only a running attempt needs", || Ok(leftovers(host).is_empty()))
        .with_context(|| leftovers(host).join(", "))
}

/// What ended attempts have left that they should not.
fn leftovers(host: &Path) -> Vec<String> {
    let list = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let attempts = list(&host.join("jobs")).into_iter().flat_map(|job| list(&job));
    let left = attempts.flat_map(|attempt| {
        let mut left: Vec<PathBuf> = vec![attempt.join("secrets.json")];
        left.retain(|path| path.exists());
        if !is_delivered(&attempt) {
            left.push(attempt);
        }
        left
    });
    left.chain(list(&host.join("removed"))).map(|path| path.display().to_string()).collect()
}

/// The host was restarted.
fn change_boot_id(directory: &Path) -> Result<()> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let boot = boot.trim().as_bytes();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            change_boot_id(&path)?;
            continue;
        }
        let mut bytes = fs::read(&path)?;
        while let Some(at) = bytes.windows(boot.len()).position(|window| window == boot) {
            bytes[at..at + boot.len()].copy_from_slice(OTHER_BOOT.as_bytes());
            fs::write(&path, &bytes)?;
        }
    }
    Ok(())
}
