//! An agent that is killed before one of its file operations, while its supervisor and trainer live on.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use crate::agent::check_job;
use crate::host::{Agent, AgentSettings, add_worker, kill_all_that_mention, submit};
use crate::kills::{Killer, Kills, Outcome};
use crate::options::Options;
use crate::recorder::Recorder;
use crate::recording::SharedRecording;
use crate::server::{Server, Settings};
use crate::sweep::Findings;
use crate::tracer::{Follow, TracedProgram};
use crate::wait::wait_for;

/// How many operations are tried by default.
const BOUND: usize = 30;
/// Most of a run is waiting.
const THREADS: usize = 6;

pub fn run(options: &Options, scratch: &Path) -> Result<Findings> {
    let scratch = scratch.join("agent-killed");
    fs::create_dir(&scratch)?;
    // A run without a kill, in which the operations are counted.
    let counted = scratch.join("counted");
    let begun = Arc::new(AtomicUsize::new(0));
    let violations = run_once(options, &counted, None, &begun)?;
    ensure!(violations.is_empty(), "without a kill: {}", violations.join(", "));
    let points = begun.load(Ordering::SeqCst);
    let kills = Kills { part: "agent-killed", options, points, bound: BOUND, threads: THREADS };
    kills.run(&scratch.join("killed"), |point, directory| {
        let begun = Arc::new(AtomicUsize::new(0));
        let violations = run_once(options, directory, Some(point), &begun)?;
        Ok(Outcome { was_killed: begun.load(Ordering::SeqCst) > point, violations })
    })
}

/// Returns what is wrong after a kill: the trainer must have started once, and its attempt must have completed.
fn run_once(options: &Options, root: &Path, at: Option<usize>, begun: &Arc<AtomicUsize>) -> Result<Vec<String>> {
    let (data, host) = (root.join("server"), root.join("host"));
    for directory in [root, &data, &host] {
        fs::create_dir(directory)?;
    }
    let server = Server::start(&Settings { dist: options.dist.clone(), variables: Vec::new() }, &data)?;
    let client = &server.client;
    let agent = AgentSettings::new(&options.dist, &root.join("trainer"), add_worker(client)?)?;
    let recorder = Recorder::new(&host, &SharedRecording::default());
    let killer = Killer { inner: recorder, at, begun: Arc::clone(begun) };
    let log = fs::File::create(root.join("killed-agent.log"))?;
    let traced = TracedProgram::start(&agent.program(&host, client.url()), log, Follow::Threads, killer)?;
    let job = submit(client, "submit")?;
    // An operation that this run does not reach is one of the end.
    let is_over = || -> Result<bool> { Ok(client.get(&format!("/api/queue/{job}"))?["status"] == "completed") };
    let waited = wait_for("the kill", || Ok(!traced.is_running() || is_over()?));
    traced.end(Signal::SIGKILL)?;
    waited?;
    let running = Agent::start(&agent, &host, client.url(), &root.join("agent.log"))?;
    let mut violations = Vec::new();
    if let Err(error) = check_job(client, &host, &job, &mut violations) {
        violations.push(format!("{error:#}"));
    }
    let journal = fs::read_to_string(agent.journal()).context("the trainer's journal")?;
    if journal != "started\nended\n" {
        violations.push(format!("the trainer's journal: {journal:?}"));
    }
    drop(running);
    kill_all_that_mention(&host.to_string_lossy());
    Ok(violations)
}
