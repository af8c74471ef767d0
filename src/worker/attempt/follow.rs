//! While the supervisor runs: everything that goes on beside the trainer.

use std::io;
use std::time::Duration;

use app::protocol::worker::StatusReport;
use nix::sys::signal::Signal;
use tokio::sync::watch;

use super::{Attempt, blocking};
use crate::api::until_answered;
use crate::files::{AttemptDir, Exit, Running, StopCause, VERSION};
use crate::supervisor::cgroup::Cgroup;
use crate::{clock, process};

/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// How it stands with the trainer.
enum Stands {
    /// Its supervisor lives.
    Watched,
    /// Its supervisor is gone without a word.
    Orphaned,
    Over(Exit),
}

impl AttemptDir {
    fn stands(&self) -> io::Result<Stands> {
        if let Some(exit) = self.known_end()? {
            return Ok(Stands::Over(exit));
        }
        if self.is_watched()? {
            return Ok(Stands::Watched);
        }
        // It writes the end before it dies.
        Ok(self.known_end()?.map_or(Stands::Orphaned, Stands::Over))
    }

    fn known_end(&self) -> io::Result<Option<Exit>> {
        match self.read("exit.json") {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Exit {
                version: VERSION,
                error: Some(format!("the trainer's end cannot be read: {error}")),
                ended_at: clock::now(),
                ..Exit::default()
            })),
            read => read,
        }
    }

    /// Whether a supervisor lives.
    fn is_watched(&self) -> io::Result<bool> {
        match self.supervisor() {
            Ok(running) => running.map_or(Ok(false), |running| running.supervisor.lives()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn supervisor(&self) -> io::Result<Option<Running>> {
        self.read("supervisor.json")
    }
}

impl Attempt {
    /// Until the trainer has ended and its log and progress are delivered.
    pub(super) async fn follow(&self) -> Exit {
        let done = watch::Sender::new(false);
        let end = async {
            let exit = self.end().await;
            done.send_replace(true);
            exit
        };
        let mut over = done.subscribe();
        let lease = async {
            tokio::select! {
                () = self.keep_lease() => {}
                _ = over.wait_for(|done| *done) => {}
            }
        };
        let (exit, ..) = tokio::join!(
            end,
            self.while_ours(lease),
            self.carry_out_orders(done.subscribe()),
            self.while_ours(self.announce()),
            self.while_ours(self.pump_log(done.subscribe())),
            self.while_ours(self.pump_points(done.subscribe())),
            self.while_ours(self.pump_files(done.subscribe())),
        );
        self.gpus_are_free().await;
        exit
    }

    /// Waits for the end; of a dead supervisor it makes one up.
    async fn end(&self) -> Exit {
        loop {
            let dir = self.dir.clone();
            match blocking(move || dir.stands()).await {
                Ok(Stands::Over(exit)) => return exit,
                Ok(Stands::Orphaned) => return self.orphaned().await,
                // What cannot be seen now is looked for again: no training is ended because a disk stammers.
                Ok(Stands::Watched) | Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    async fn supervisor(&self) -> Option<Running> {
        let dir = self.dir.clone();
        blocking(move || dir.supervisor()).await.ok().flatten()
    }

    /// The supervisor is gone without a word: what it left running is ended.
    async fn orphaned(&self) -> Exit {
        let rebooted = process::host_boot() != self.spec.host_boot;
        if !rebooted {
            self.kill_left().await;
        }
        let error = if rebooted {
            "the host was restarted while the trainer ran"
        } else {
            "the trainer's supervisor was killed, so the trainer was stopped (out of memory on the host?)"
        };
        let exit = Exit {
            version: VERSION,
            error: Some(error.to_owned()),
            host_fault: rebooted,
            ended_at: clock::now(),
            ..Exit::default()
        };
        if let Err(error) = self.dir.write("exit.json", &exit) {
            tracing::error!("{}: its end cannot be written: {error}", self.key());
        }
        exit
    }

    /// Ends what has nobody above it any more: known by its environment, and by its control group where it had one.
    pub(super) async fn kill_left(&self) {
        let marker = self.marker();
        let group = self.supervisor().await.and_then(|running| running.cgroup).map(|path| Cgroup::at(&path));
        loop {
            let (marker, group) = (marker.clone(), group.clone());
            let killed = move || {
                let held = group.filter(|group| !group.is_empty() && group.kill().is_ok());
                let left = process::with_environment(&marker);
                for process in &left {
                    process.signal(Signal::SIGKILL);
                }
                Ok::<_, io::Error>(held.is_some() || !left.is_empty())
            };
            if !matches!(blocking(killed).await, Ok(true)) {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        if let Some(group) = group {
            group.remove();
        }
    }

    /// Hands orders on to the supervisor.
    async fn carry_out_orders(&self, mut done: watch::Receiver<bool>) {
        let mut orders = self.stop.subscribe();
        loop {
            let cause = *orders.borrow_and_update();
            if let Some(cause) = cause {
                self.hand_on(cause).await;
            }
            tokio::select! {
                _ = done.wait_for(|done| *done) => return,
                changed = orders.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn hand_on(&self, cause: StopCause) {
        let (dir, order) = (self.dir.clone(), self.order(cause));
        // Not synced: a disk that is busy with a checkpoint would take seconds, and no trainer outlives what would lose it.
        let write = move || dir.write_soon("stop.json", &order).or_else(|_| dir.write("stop.json", &order));
        if let Err(error) = blocking(write).await {
            // The supervisor then gets its default order.
            tracing::error!("{}: the order to stop cannot be written: {error}", self.key());
            if let Some(running) = self.supervisor().await {
                running.supervisor.signal(Signal::SIGTERM);
            }
            return;
        }
        if let Some(running) = self.supervisor().await {
            running.supervisor.signal(Signal::SIGUSR1);
        }
    }

    /// Says that the trainer runs, if it ever did.
    async fn announce(&self) {
        if self.state().running || self.supervisor().await.is_none() {
            return;
        }
        let report = StatusReport { resumed_from_step: self.state().resumed_from_step, ..self.key().report("running") };
        let what = format!("reporting that {} runs", self.key());
        match until_answered(&self.context.online, &what, async || self.api.status(&report).await).await {
            Ok(()) => self.update(true, |state| state.running = true).await,
            Err(error) => self.judge("reporting that it runs", &error),
        }
    }
}
