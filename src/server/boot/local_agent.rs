//! Runs the agent for the orchestrator's own GPUs as a child process that connects over loopback. It is listed like any
//! other worker.
//!
//! It runs as a separate user, so that no trainer can access the server's files. It stops with the server and leaves
//! its runs to their supervisors; the next start adopts them. If the server was killed, the agent continues and keeps
//! its work directory locked until it ends.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use app::logging::LogLineFormat;
use app::protocol::agents::ProbeReport;
use app::protocol::system::fingerprint::Fingerprint;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::operator::local_url;
use crate::args::ServerArgs;
use crate::args::local::{LocalAccount, LocalWorkerMode};
use crate::service::Services;
use crate::tls::Tls;

/// The program file of the agent.
pub const AGENT_BINARY: &str = "simpletuner-worker";
/// Timeout of the check for GPU and trainer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the agent may take to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);
/// The first and the longest delay before an agent that has exited is restarted.
const RESTART_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Returns the agent beside this program, or the one on the `PATH`.
pub fn agent_program() -> PathBuf {
    let sibling = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(AGENT_BINARY)));
    sibling.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(AGENT_BINARY))
}

/// Settings of the child process.
pub struct LocalAgent {
    /// Where the server listens.
    pub address: SocketAddr,
    /// TLS of that listener; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// The user it runs as.
    pub account: LocalAccount,
    /// The agent's work directory.
    pub work_dir: PathBuf,
    /// The log format, the same as the server's.
    pub log_format: LogLineFormat,
}

impl LocalAgent {
    /// Creates it from the flags.
    pub fn new(args: &ServerArgs, account: LocalAccount, address: SocketAddr, tls: Option<Tls>, data: &Path) -> Self {
        let work_dir = args.local.work_dir(data, &account);
        Self { address, tls, account, work_dir, log_format: args.ops.log_format }
    }

    /// Keeps an agent running until the server stops.
    pub async fn run(self, services: Arc<Services>, mode: LocalWorkerMode, shutdown: CancellationToken) {
        if mode == LocalWorkerMode::Off || (mode == LocalWorkerMode::Auto && !self.can_run_jobs().await) {
            return;
        }
        let name = format!("local-{}", gethostname::gethostname().to_string_lossy());
        tracing::info!(worker = name, "local worker: jobs can run on this host");
        let mut delay = RESTART_BACKOFF.0;
        while !shutdown.is_cancelled() {
            let pin = self.tls.as_ref().map(Tls::fingerprint);
            // Read on every start, because the token may have been rotated.
            match services.workers.local_worker(&name).await.map(|token| self.run_command(&name, &token, pin).spawn()) {
                Ok(Ok(child)) => wait_or_stop(child, &shutdown, self.key_changed(pin)).await,
                Ok(Err(error)) => tracing::error!(%error, "local worker: failed to start the agent"),
                Err(error) => {
                    tracing::error!(?error, worker = name, "local worker: jobs cannot run on this host");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => delay = (delay * 2).min(RESTART_BACKOFF.1),
                () = shutdown.cancelled() => {}
            }
        }
    }

    /// Waits until the server's fingerprint changes.
    async fn key_changed(&self, current: Option<Fingerprint>) {
        match self.tls.as_ref().zip(current) {
            Some((tls, current)) => tls.key_changed(current).await,
            None => std::future::pending().await,
        }
    }

    fn run_command(&self, name: &str, token: &str, pin: Option<Fingerprint>) -> Command {
        let mut command = self.agent_command();
        if needs_sandbox_min(&self.account, std::env::var_os(SANDBOX_MIN_VARIABLE).as_deref()) {
            command.env(SANDBOX_MIN_VARIABLE, "files");
        }
        // Pinned by its key, whatever names the certificate has.
        command.envs(pin.map(|pin| ("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT", pin.to_string())));
        command
            .args(["--persistent", "--on-stop", "leave", "--name", name])
            .env("SIMPLETUNER_ORCHESTRATOR_URL", local_url(self.address, pin.is_some()))
            .env("SIMPLETUNER_WORKER_TOKEN", token)
            .env("SIMPLETUNER_WORK_DIR", &self.work_dir)
            .env("SIMPLETUNER_LOG_FORMAT", self.log_format.as_str())
            .stdin(std::process::Stdio::null());
        command
    }

    /// Returns the command that runs the agent as its user.
    fn agent_command(&self) -> Command {
        let mut command = Command::new(agent_program());
        // Neither the agent nor its trainers may get the server's settings.
        for (variable, _) in std::env::vars_os() {
            if is_server_variable(&variable.to_string_lossy()) {
                command.env_remove(variable);
            }
        }
        if let LocalAccount::Other(user) = &self.account {
            // The agent switches to that user itself, with all groups that give access to GPUs.
            command
                .env(RUN_AS_VARIABLE, &user.name)
                .env("HOME", &user.dir)
                .env("USER", &user.name)
                .env("LOGNAME", &user.name);
            command.current_dir("/");
        }
        command
    }

    /// Returns whether this host has a GPU and a trainer.
    async fn can_run_jobs(&self) -> bool {
        let probing = self.agent_command().arg("probe").stdin(std::process::Stdio::null()).kill_on_drop(true).output();
        let probe: Option<ProbeReport> = match tokio::time::timeout(PROBE_TIMEOUT, probing).await {
            Ok(Ok(output)) => serde_json::from_slice(&output.stdout).ok(),
            _ => None,
        };
        let can_run = probe.as_ref().is_some_and(|probe| probe.gpus > 0 && probe.trainer);
        if !can_run {
            tracing::info!(
                ?probe,
                "local worker: disabled; it requires the agent beside this program, a GPU and a trainer"
            );
        }
        can_run
    }
}

/// Tells the agent which user to run as.
const RUN_AS_VARIABLE: &str = "SIMPLETUNER_RUN_AS";
/// The minimum sandbox level.
const SANDBOX_MIN_VARIABLE: &str = "SIMPLETUNER_SANDBOX_MIN";

/// Settings that apply to every agent on this host.
const MACHINE_VARIABLES: [&str; 7] = [
    "SIMPLETUNER_TRAINER",
    "SIMPLETUNER_KEEP_FREE",
    SANDBOX_MIN_VARIABLE,
    "SIMPLETUNER_ALLOW_CODE",
    "SIMPLETUNER_PATHS",
    "SIMPLETUNER_DATA_ROOT",
    "SIMPLETUNER_WORKER_TRAINER_CWD",
];

/// Returns whether the agent needs a minimum level that was not chosen: as the server's user, only the sandbox protects
/// the server's files from trainers.
fn needs_sandbox_min(account: &LocalAccount, chosen: Option<&OsStr>) -> bool {
    *account == LocalAccount::Server && chosen.is_none_or(OsStr::is_empty)
}

/// Returns whether a variable is not passed to the agent, because it is about the server. Of this program's variables,
/// the agent gets only those about the host.
fn is_server_variable(variable: &str) -> bool {
    variable.starts_with("SIMPLETUNER_") && !MACHINE_VARIABLES.contains(&variable)
}

/// Waits until the agent exits, and stops it when the server stops or has a new key.
async fn wait_or_stop(mut child: Child, shutdown: &CancellationToken, key_change: impl Future<Output = ()>) {
    let stop = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = key_change => {}
        }
    };
    let exit = tokio::select! {
        exit = child.wait() => exit,
        () = stop => {
            let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid
                && let Err(error) = kill(Pid::from_raw(pid), Signal::SIGTERM)
            {
                tracing::warn!(%error, "local worker: failed to stop the agent");
            }
            match tokio::time::timeout(SHUTDOWN_TIMEOUT, child.wait()).await {
                Ok(exit) => exit,
                Err(_) => child.kill().await.and(child.wait().await),
            }
        }
    };
    match exit {
        Ok(status) if shutdown.is_cancelled() => tracing::debug!(%status, "local worker: agent stopped"),
        Ok(status) => tracing::warn!(%status, "local worker: agent exited; restarting it"),
        Err(error) => tracing::warn!(%error, "local worker: failed to wait for the agent"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_gets_variables_about_the_host_only() {
        let variables =
            ["PATH", "SIMPLETUNER_TRAINER", "SIMPLETUNER_KEEP_FREE", "SIMPLETUNER_API_KEY", "SIMPLETUNER_NEW"];
        assert_eq!(variables.map(is_server_variable), [false, false, false, true, true]);
    }

    #[test]
    fn empty_sandbox_level_counts_as_unset() {
        let needs = |chosen: Option<&str>| needs_sandbox_min(&LocalAccount::Server, chosen.map(OsStr::new));
        assert_eq!([None, Some(""), Some("none")].map(needs), [true, true, false]);
    }
}
