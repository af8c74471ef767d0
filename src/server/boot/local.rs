//! The orchestrator's own GPUs: the agent beside this program, as a child over loopback, listed like any other worker.
//!
//! It runs as a user of its own, so that no trainer owns the server's files. It ends with the server and leaves what it runs to its supervisors; the next start adopts it. One that outlived a
//! server which was killed goes on by itself, and keeps its work directory until it ends.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use app::logging::Format;
use app::protocol::fingerprint::Fingerprint;
use app::protocol::worker::Probe;
use clap::ValueEnum;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::operator::own_url;
use crate::cli::ServerArgs;
use crate::cli::worker::agent_program;
use crate::service::Core;
use crate::tls::Tls;

/// Whether jobs may run on the server's own machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Local {
    /// If it has a GPU and a trainer.
    Auto,
    /// Whatever it has.
    On,
    /// No.
    Off,
}

/// How long looking at the machine may take.
const PROBING: Duration = Duration::from_secs(30);
/// How long the agent may take to leave.
const LEAVING: Duration = Duration::from_secs(6);
/// The waits between starts of an agent that ends by itself: the first, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// As which user the agent, and so its trainers, run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// The server's own: the operator has agreed to that.
    Server,
    /// Another one.
    Other(User),
}

/// What the child is told.
pub struct LocalAgent {
    /// Where the server listens.
    pub address: SocketAddr,
    /// How it speaks there; none for plain HTTP.
    pub tls: Option<Tls>,
    /// As whom it runs.
    pub account: Account,
    /// Where the agent keeps its jobs.
    pub work_dir: PathBuf,
    /// How it logs: beside this server, so as this server does.
    pub log_format: Format,
}

impl LocalAgent {
    /// As the flags have it.
    pub fn new(args: &ServerArgs, account: Account, address: SocketAddr, tls: Option<Tls>, data: &Path) -> Self {
        let work_dir = args.local.work_dir(data, &account);
        Self { address, tls, account, work_dir, log_format: args.ops.log_format }
    }

    /// Keeps an agent running until the server stops.
    pub async fn keep(self, core: Arc<Core>, mode: Local, shutdown: CancellationToken) {
        if mode == Local::Off || (mode == Local::Auto && !self.worthwhile().await) {
            return;
        }
        let name = format!("local-{}", gethostname::gethostname().to_string_lossy());
        tracing::info!(worker = name, "jobs may run on this machine");
        let mut wait = WAITS.0;
        while !shutdown.is_cancelled() {
            let pin = self.tls.as_ref().map(Tls::fingerprint);
            // Asked for each time: somebody may have given the worker another one.
            match core.local_worker(&name).await.map(|token| self.command(&name, &token, pin).spawn()) {
                Ok(Ok(child)) => watch(child, &shutdown, self.another_key(pin)).await,
                Ok(Err(error)) => tracing::error!(%error, "the agent beside this program does not start"),
                Err(refusal) => tracing::error!(?refusal, worker = name, "jobs cannot run on this machine"),
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(WAITS.1),
                () = shutdown.cancelled() => {}
            }
        }
    }

    /// Waits until the agent has to know the server by another key.
    async fn another_key(&self, than: Option<Fingerprint>) {
        match self.tls.as_ref().zip(than) {
            Some((tls, than)) => tls.another_key(than).await,
            None => std::future::pending().await,
        }
    }

    fn command(&self, name: &str, token: &str, pin: Option<Fingerprint>) -> Command {
        let mut command = self.program();
        // Only the sandbox is between its trainers and this server's files.
        if self.account == Account::Server && std::env::var_os(SANDBOX_MIN).is_none() {
            command.env(SANDBOX_MIN, "files");
        }
        // Whatever names the certificate has, this is the server that holds its key.
        command.envs(pin.map(|pin| ("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT", pin.to_string())));
        command
            .args(["--persistent", "--on-stop", "leave", "--name", name])
            .env("SIMPLETUNER_ORCHESTRATOR_URL", own_url(self.address, pin.is_some()))
            .env("SIMPLETUNER_WORKER_TOKEN", token)
            .env("SIMPLETUNER_WORK_DIR", &self.work_dir)
            .env("SIMPLETUNER_LOG_FORMAT", self.log_format.word())
            .stdin(std::process::Stdio::null());
        command
    }

    /// The agent's program as its user.
    fn program(&self) -> Command {
        let mut command = Command::new(agent_program());
        // What is meant for this server is not for the agent, and less for its trainers.
        for (variable, _) in std::env::vars_os() {
            if is_not_for_the_agent(&variable.to_string_lossy()) {
                command.env_remove(variable);
            }
        }
        if let Account::Other(user) = &self.account {
            // It becomes that user by itself, with all groups that give access to GPUs.
            command.env(RUN_AS, &user.name).env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name);
            command.current_dir("/");
        }
        command
    }

    /// Whether this machine has a GPU and a trainer.
    async fn worthwhile(&self) -> bool {
        let probing = self.program().arg("probe").stdin(std::process::Stdio::null()).kill_on_drop(true).output();
        let probe: Option<Probe> = match tokio::time::timeout(PROBING, probing).await {
            Ok(Ok(output)) => serde_json::from_slice(&output.stdout).ok(),
            _ => None,
        };
        let worthwhile = probe.as_ref().is_some_and(|probe| probe.gpus > 0 && probe.trainer);
        if !worthwhile {
            tracing::info!(
                ?probe,
                "no jobs run on this machine: that needs the agent beside this program, a GPU and a trainer"
            );
        }
        worthwhile
    }
}

/// As whom the agent is to run.
const RUN_AS: &str = "SIMPLETUNER_RUN_AS";
/// How closely it confines its trainers at least.
const SANDBOX_MIN: &str = "SIMPLETUNER_SANDBOX_MIN";

/// Settings of an agent that hold for whichever one runs here.
const OF_THIS_MACHINE: [&str; 6] = [
    "SIMPLETUNER_TRAINER",
    "SIMPLETUNER_KEEP_FREE",
    SANDBOX_MIN,
    "SIMPLETUNER_ALLOW_CODE",
    "SIMPLETUNER_PATHS",
    "SIMPLETUNER_DATA_ROOT",
];

/// Of our variables the agent gets those that say something of this machine.
fn is_not_for_the_agent(variable: &str) -> bool {
    variable.starts_with("SIMPLETUNER_") && !OF_THIS_MACHINE.contains(&variable)
}

/// Waits for the agent's end, and asks for it when the server stops or has another key.
async fn watch(mut child: Child, shutdown: &CancellationToken, another_key: impl Future<Output = ()>) {
    let enough = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = another_key => {}
        }
    };
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = enough => {
            let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid
                && let Err(error) = kill(Pid::from_raw(pid), Signal::SIGTERM)
            {
                tracing::warn!(%error, "the local agent could not be told to leave");
            }
            match tokio::time::timeout(LEAVING, child.wait()).await {
                Ok(ended) => ended,
                Err(_) => child.kill().await.and(child.wait().await),
            }
        }
    };
    match ended {
        Ok(status) if shutdown.is_cancelled() => tracing::debug!(%status, "the local agent has left"),
        Ok(status) => tracing::warn!(%status, "the local agent ended; starting it again"),
        Err(error) => tracing::warn!(%error, "the local agent was lost from sight"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_gets_what_says_something_of_this_machine() {
        let variables =
            ["PATH", "SIMPLETUNER_TRAINER", "SIMPLETUNER_KEEP_FREE", "SIMPLETUNER_API_KEY", "SIMPLETUNER_NEW"];
        assert_eq!(variables.map(is_not_for_the_agent), [false, false, false, true, true]);
    }
}
