//! The server under test.

use std::io::{BufRead, BufReader, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::client::{ADMIN, Client};
use crate::program::Program;
use crate::tracer::{Follow, Observer, TracedProgram};

/// How servers are started.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of the programs.
    pub dist: PathBuf,
    /// More variables of the server.
    pub variables: Vec<(&'static str, String)>,
}

impl Settings {
    /// The server with its data below `root`, at a port that the kernel chooses.
    pub fn program(&self, root: &Path) -> Program {
        let program = Program::new(self.dist.join("simpletuner"))
            .arg("server")
            .arg("--port")
            .arg("0")
            .arg("--data-dir")
            .arg(root.join("data"))
            .env("HOME", root)
            .env("SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", ADMIN)
            .env("SIMPLETUNER_LOCAL", "off")
            .env("SIMPLETUNER_KEEP_FREE", "0")
            .env("SIMPLETUNER_AUDIT_SHIP", format!("file:{}", root.join("shipped.jsonl").display()));
        self.variables.iter().fold(program, |program, (name, value)| program.env(name, value))
    }
}

/// Reads a server's messages until it listens; returns its URL and the rest of them.
fn wait_for_address(stderr: PipeReader) -> Result<(String, JoinHandle<String>)> {
    let mut lines = BufReader::new(stderr);
    let mut log = String::new();
    loop {
        let begin = log.len();
        if lines.read_line(&mut log)? == 0 {
            bail!("the server does not start:\n{log}");
        }
        if let Some((_, url)) = log[begin..].split_once("listening on ") {
            let url = url.trim().to_owned();
            let rest = std::thread::spawn(move || {
                // What is readable is enough.
                let _ = lines.read_to_string(&mut log);
                log
            });
            return Ok((url, rest));
        }
    }
}

/// A running server; killed on drop.
pub struct Server {
    pub client: Client,
    child: Child,
    log: Option<JoinHandle<String>>,
}

impl Server {
    pub fn start(settings: &Settings, root: &Path) -> Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = settings.program(root).command();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn()?;
        drop(command);
        match wait_for_address(reader) {
            Ok((url, log)) => Ok(Self { client: Client::new(&url), child, log: Some(log) }),
            Err(error) => {
                // It may have ended already.
                let _ = child.kill();
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Kills it; returns its messages.
    pub fn kill(mut self) -> Result<String> {
        self.child.kill()?;
        self.child.wait()?;
        self.log.take().context("its messages")?.join().map_err(|_| anyhow::anyhow!("the reader has failed"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that is traced.
pub struct TracedServer {
    pub client: Client,
    program: TracedProgram,
}

impl TracedServer {
    pub fn start(settings: &Settings, root: &Path, observer: impl Observer + Send + 'static) -> Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let program = TracedProgram::start(&settings.program(root), writer, Follow::Threads, observer)?;
        match wait_for_address(reader) {
            Ok((url, _log)) => Ok(Self { client: Client::new(&url), program }),
            Err(error) => program.end(Signal::SIGKILL).and(Err(error)),
        }
    }

    /// Sends a signal and waits for the end.
    pub fn end(self, signal: Signal) -> Result<()> {
        self.program.end(signal)
    }
}
