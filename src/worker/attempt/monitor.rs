//! Runs the agent's tasks while the supervisor runs.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use app::protocol::agents::StatusReport;
use app::threads::run_io;
use nix::sys::signal::Signal;
use tokio::sync::watch;

use super::AttemptRunner;
use crate::worker::api::retry_until_answered;
use crate::worker::cgroup::Cgroup;
use crate::worker::clock;
use crate::worker::files::{AttemptDir, AttemptExit, StopCause, SupervisorRecord, VERSION};
use crate::worker::process::{self, ProcId};
use crate::worker::supervisor_pool::SupervisorProcess;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After this time files are flushed. A shorter job would only wait for the disk: its end is flushed anyway.
const FLUSH_DELAY: Duration = Duration::from_secs(1);

enum SupervisionStatus {
    /// The supervisor is alive.
    Supervised(ProcId),
    /// The supervisor is dead and has recorded no exit.
    Orphaned,
    Ended(AttemptExit),
}

impl AttemptDir {
    fn supervision_status(&self) -> io::Result<SupervisionStatus> {
        if let Some(exit) = self.recorded_exit()? {
            return Ok(SupervisionStatus::Ended(exit));
        }
        if let Some(supervisor) = self.living_supervisor()? {
            return Ok(SupervisionStatus::Supervised(supervisor));
        }
        // The supervisor records the exit before it exits.
        Ok(self.recorded_exit()?.map_or(SupervisionStatus::Orphaned, SupervisionStatus::Ended))
    }

    fn recorded_exit(&self) -> io::Result<Option<AttemptExit>> {
        match self.read_json("exit.json") {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(AttemptExit {
                version: VERSION,
                error: Some(format!("cannot read the trainer's exit: {error}")),
                ended_at: clock::now(),
                ..AttemptExit::default()
            })),
            result => result,
        }
    }

    pub(super) fn living_supervisor(&self) -> io::Result<Option<ProcId>> {
        let supervisor = match self.read_supervisor_record() {
            Ok(record) => record.map(|record| record.supervisor),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error),
        };
        match supervisor {
            Some(supervisor) if supervisor.check_alive()? => Ok(Some(supervisor)),
            _ => Ok(None),
        }
    }

    fn read_supervisor_record(&self) -> io::Result<Option<SupervisorRecord>> {
        self.read_json("supervisor.json")
    }
}

impl AttemptRunner {
    /// Runs until the trainer has exited and its log and progress are delivered.
    pub(super) async fn monitor(&self) -> AttemptExit {
        let done = watch::Sender::new(false);
        let exit_wait = async {
            let exit = self.wait_for_exit().await;
            done.send_replace(true);
            exit
        };
        let mut ended = done.subscribe();
        let lease = async {
            tokio::select! {
                () = self.maintain_lease() => {}
                _ = ended.wait_for(|done| *done) => {}
            }
        };
        let (exit, ..) = tokio::join!(
            exit_wait,
            self.unless_superseded(lease),
            self.flush_files(done.subscribe()),
            self.forward_stop_requests(done.subscribe()),
            self.unless_superseded(self.report_running()),
            self.unless_superseded(self.upload_log(done.subscribe())),
            self.unless_superseded(self.upload_metrics(done.subscribe())),
            self.unless_superseded(self.upload_files(done.subscribe())),
        );
        self.wait_until_gpus_free().await;
        exit
    }

    /// Waits for the exit; if the supervisor died without recording one, creates it.
    async fn wait_for_exit(&self) -> AttemptExit {
        let mut assigned = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        let exit = self.wait_for_recorded_exit(assigned.as_mut()).await;
        if let Some(mut supervisor) = assigned {
            let context = Arc::clone(&self.context);
            tokio::task::spawn_local(async move {
                if supervisor.wait_until_idle().await {
                    context.supervisors.put_back(supervisor);
                }
            });
        }
        exit
    }

    async fn wait_for_recorded_exit(&self, mut assigned: Option<&mut SupervisorProcess>) -> AttemptExit {
        loop {
            let dir = self.dir.clone();
            match run_io(move || dir.supervision_status()).await {
                Ok(SupervisionStatus::Ended(exit)) if exit.is_flushed || !self.is_host_restarted() => return exit,
                // After a restart of the host, its log or output may be incomplete.
                Ok(SupervisionStatus::Ended(_) | SupervisionStatus::Orphaned) => return self.handle_orphaned().await,
                Ok(SupervisionStatus::Supervised(supervisor)) => {
                    // The supervisor reports the end only to the agent that assigned the attempt.
                    let ended = async {
                        let is_idle = match &mut assigned {
                            Some(assigned) => assigned.wait_until_idle().await,
                            None => false,
                        };
                        if !is_idle {
                            std::future::pending::<()>().await;
                        }
                    };
                    let is_reported = tokio::select! {
                        () = ended => true,
                        exited = supervisor.wait_for_exit() => {
                            if exited.is_err() {
                                tokio::time::sleep(POLL_INTERVAL).await;
                            }
                            false
                        }
                    };
                    // A trainer without a sandbox can forge the report. Without an exit, only that of the process counts.
                    if is_reported {
                        assigned = None;
                    }
                }
                // An error is retried: a disk with temporary errors ends no training.
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Flushes what the next agent needs after a crash of the host, unless the attempt ends soon.
    async fn flush_files(&self, mut done: watch::Receiver<bool>) {
        if tokio::time::timeout(FLUSH_DELAY, done.wait_for(|done| *done)).await.is_ok() {
            return;
        }
        // Saves what has changed in memory.
        self.update(false, |_| {}).await;
        let dir = self.dir.clone();
        if let Err(error) = run_io(move || dir.flush()).await {
            tracing::warn!("{}: cannot flush its files: {error}", self.key());
        }
    }

    async fn supervisor_record(&self) -> Option<SupervisorRecord> {
        let dir = self.dir.clone();
        run_io(move || dir.read_supervisor_record()).await.ok().flatten()
    }

    pub(super) fn is_host_restarted(&self) -> bool {
        process::host_boot_id() != self.spec.host_boot
    }

    /// The supervisor died without recording an exit: kills what it left running.
    async fn handle_orphaned(&self) -> AttemptExit {
        let rebooted = self.is_host_restarted();
        if !rebooted {
            self.kill_remaining().await;
        }
        let error = if rebooted {
            "the host was restarted while the trainer was running, or just after its end"
        } else {
            "the trainer's supervisor was killed, so the trainer was stopped (out of memory on the host?)"
        };
        let exit = AttemptExit {
            version: VERSION,
            error: Some(error.to_owned()),
            host_fault: rebooted,
            ended_at: clock::now(),
            ..AttemptExit::default()
        };
        if let Err(error) = self.dir.write_json("exit.json", &exit) {
            tracing::error!("{}: cannot write its exit: {error}", self.key());
        }
        exit
    }

    /// Kills processes without a supervisor: identified by their environment, and by their control group if they had
    /// one.
    pub(super) async fn kill_remaining(&self) {
        let marker = self.environment_marker();
        let group =
            self.supervisor_record().await.and_then(|record| record.cgroup).map(|path| Cgroup::from_path(&path));
        loop {
            let (marker, group) = (marker.clone(), group.clone());
            let kill_all = move || {
                let group_killed = group.is_some_and(|group| !group.is_empty() && group.kill().is_ok());
                let processes = process::find_by_environment(&marker);
                for process in &processes {
                    process.signal(Signal::SIGKILL);
                }
                Ok::<_, io::Error>(group_killed || !processes.is_empty())
            };
            if !matches!(run_io(kill_all).await, Ok(true)) {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        if let Some(group) = group {
            group.remove();
        }
    }

    /// Forwards stop requests to the supervisor.
    async fn forward_stop_requests(&self, mut done: watch::Receiver<bool>) {
        let mut orders = self.stop.subscribe();
        loop {
            let cause = *orders.borrow_and_update();
            if let Some(cause) = cause {
                self.write_stop_order(cause).await;
            }
            tokio::select! {
                _ = done.wait_for(|done| *done) => return,
                changed = orders.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn write_stop_order(&self, cause: StopCause) {
        let (dir, order) = (self.dir.clone(), self.stop_order(cause));
        // Not synced: a disk that is busy with a checkpoint would take seconds, and an event that loses the file also
        // ends the trainer.
        let write =
            move || dir.write_json_unsynced("stop.json", &order).or_else(|_| dir.write_json("stop.json", &order));
        if let Err(error) = run_io(write).await {
            // The supervisor then gets its default stop request.
            tracing::error!("{}: cannot write the stop request: {error}", self.key());
            if let Some(record) = self.supervisor_record().await {
                record.supervisor.signal(Signal::SIGTERM);
            }
            return;
        }
        if let Some(record) = self.supervisor_record().await {
            record.supervisor.signal(Signal::SIGUSR1);
        }
    }

    /// Reports that the trainer is running, if it ever was.
    async fn report_running(&self) {
        if self.state().running || self.supervisor_record().await.is_none() {
            return;
        }
        let report =
            StatusReport { resumed_from_step: self.state().resumed_from_step, ..self.key().status_report("running") };
        let operation = format!("reporting {} as running", self.key());
        match retry_until_answered(&self.context.reconnect_signal, &operation, async || {
            self.api.report_status(&report).await
        })
        .await
        {
            // Saved with the next change: the next agent may report it again.
            Ok(()) => self.state().running = true,
            Err(error) => self.handle_error("reporting it as running", &error),
        }
    }
}
