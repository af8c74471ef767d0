//! The thread that looks at the GPUs, and the board on which everybody else reads what it saw.
//!
//! A driver may hang for seconds, or for good. Only this thread then waits: nobody holds the board's lock while a driver is
//! asked, so heartbeats go on, and say that nothing is known any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use app::domain::time::Timestamp;
use app::protocol::gpu::{Gpu, GpuReading, Telemetry, Withheld};
use tokio::sync::{Notify, oneshot};

use super::gate::{Broken, Gate, Look, whole};
use super::moments::{Moments, Parcel};
use super::provider::{self, Provider, User};
use super::quarantine::Quarantine;
use super::{Hardware, as_told, is_made_up, late, remembered};
use crate::config::Config;
use crate::{clock, process};

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);
/// A look that takes longer than this will not come.
const SILENCE: Duration = Duration::from_secs(15);
/// How long the first look may take before the agent goes on without GPUs.
const START: Duration = Duration::from_secs(20);
/// Between two tries to find GPUs that were there before.
const AGAIN: Duration = Duration::from_secs(5);
/// What the drivers' libraries need of a stack, and more.
const STACK: usize = 512 * 1024;

/// The GPUs of this host, for whoever wants to know how they are.
#[derive(Debug, Clone)]
pub struct Gpus {
    board: Arc<Board>,
    asks: Sender<oneshot::Sender<Look>>,
}

/// What is known. The two locks are never held together.
#[derive(Debug)]
struct Board {
    /// The GPUs that a driver knows, and not a person alone.
    known: Vec<String>,
    state: Mutex<State>,
    /// Held while the disk is asked, and so never by the loop of the agent.
    quarantine: Mutex<Quarantine>,
    /// What is withheld has changed.
    changed: Notify,
    /// There are GPUs that were not there at the start.
    came: Notify,
}

#[derive(Debug)]
struct State {
    gate: Gate,
    quarantined: BTreeMap<String, String>,
    moments: Moments,
    /// How many of our attempts hold each.
    held: BTreeMap<String, usize>,
    /// At the last look.
    readings: BTreeMap<String, GpuReading>,
    withheld: BTreeMap<String, Withheld>,
    looked: Instant,
    hangs: bool,
}

impl Gpus {
    /// Looks what is there, in the thread that keeps looking. A driver that does not answer is not waited for: then it is
    /// what was there last, and none of it is for jobs before the driver has come back.
    pub async fn start(config: &Config) -> (Hardware, Self) {
        let (asks, asked) = channel();
        let (found, detected) = oneshot::channel();
        let settled: Arc<OnceLock<(Hardware, Arc<Board>)>> = Arc::default();
        let (cell, own) = (Arc::clone(&settled), config.clone());
        let work = move || {
            let (mut provider, mut hardware) = provider::find();
            // A driver that is not loaded yet, or was replaced under us, answers that there is nothing.
            while hardware.gpus.is_empty() && remembered::expects_any(&own) {
                std::thread::sleep(AGAIN);
                (provider, hardware) = provider::find();
            }
            let hardware = as_told(hardware, &own.gpu, &own.host);
            let (hardware, board) = cell.get_or_init(|| {
                remembered::keep(&own.work_dir, &hardware);
                Board::of(hardware, &own)
            });
            // Nobody waits for it if it took too long.
            let _ = found.send(());
            if !board.known.is_empty() {
                sample(provider, board, &asked);
            } else if late::may_come(hardware, &own) {
                late::watch(&own, &asked, || board.came.notify_one());
            }
        };
        match std::thread::Builder::new().name("gpus".to_owned()).stack_size(STACK).spawn(work) {
            Ok(_) => drop(tokio::time::timeout(START, detected).await),
            Err(error) => tracing::error!("the GPUs cannot be looked at: {error}"),
        }
        let (hardware, board) = settled.get_or_init(|| {
            let (hardware, board) = Board::of(remembered::last(&config.work_dir), config);
            let count = hardware.gpus.len();
            tracing::error!(
                "the GPUs' driver does not answer; the {count} GPU(s) known from before wait until it does"
            );
            board.hangs(&mut board.state(), START);
            (hardware, board)
        });
        (hardware.clone(), Self { board: Arc::clone(board), asks })
    }

    /// The hardware as it may be given out now.
    pub fn marked(&self, gpus: &[Gpu]) -> Vec<Gpu> {
        let state = self.board.state();
        let marked = |gpu: &Gpu| Gpu { withheld: state.withheld.get(&gpu.uuid).cloned(), ..gpu.clone() };
        gpus.iter().map(marked).collect()
    }

    /// What the next heartbeat has to tell. The first one to ask after a driver fell silent says so.
    pub fn telemetry(&self) -> Parcel {
        let mut state = self.board.state();
        if !self.board.known.is_empty() && !state.hangs && state.looked.elapsed() > SILENCE {
            self.board.hangs(&mut state, SILENCE);
        }
        state.moments.parcel()
    }

    /// The orchestrator has this.
    pub fn told(&self, parcel: &Parcel) {
        self.board.state().moments.told(parcel);
    }

    /// Waits until what is withheld has changed since the last call.
    pub async fn changed(&self) {
        self.board.changed.notified().await;
    }

    /// Waits until there are GPUs that were not there at the start.
    pub(super) async fn came(&self) {
        self.board.came.notified().await;
    }

    /// These are an attempt's until what is answered is dropped; without a grant, all are.
    pub fn hold(&self, granted: &[String]) -> Held {
        let uuids = if granted.is_empty() { self.board.known.clone() } else { granted.to_vec() };
        let mut state = self.board.state();
        for uuid in &uuids {
            *state.held.entry(uuid.clone()).or_default() += 1;
        }
        Held { board: Arc::clone(&self.board), uuids }
    }

    /// Those of these that a driver knows.
    pub(super) fn known(&self, granted: &[String]) -> Vec<String> {
        granted.iter().filter(|uuid| self.board.known.contains(uuid)).cloned().collect()
    }

    /// Looks now. Nothing if nobody looks here.
    pub(super) async fn look(&self) -> Option<Look> {
        let (answer, looked) = oneshot::channel();
        self.asks.send(answer).ok()?;
        looked.await.ok()
    }

    /// Why a GPU is in quarantine.
    pub(super) fn quarantined(&self, uuid: &str) -> Option<String> {
        self.board.state().quarantined.get(uuid).cloned()
    }

    /// Withholds GPUs until a person or a boot lets them go.
    pub(super) async fn quarantine(&self, broken: Vec<Broken>) {
        let board = Arc::clone(&self.board);
        let write = move || board.keep(&broken, clock::now(), false);
        if let Err(error) = tokio::task::spawn_blocking(write).await {
            tracing::error!("a quarantine was not written down: {error}");
        }
    }

    /// Withholds a GPU for as long as these are on it.
    pub(super) fn caught(&self, uuid: &str, users: &[User]) {
        let mut state = self.board.state();
        state.gate.caught(uuid, users);
        self.board.settle(&mut state, clock::now(), false);
    }
}

/// GPUs that an attempt has.
#[derive(Debug)]
pub struct Held {
    board: Arc<Board>,
    uuids: Vec<String>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.board.state();
        for uuid in &self.uuids {
            if let Some(count) = state.held.get_mut(uuid) {
                *count -= 1;
            }
        }
        state.held.retain(|_, count| *count > 0);
    }
}

impl Board {
    /// With nothing seen yet.
    fn of(hardware: Hardware, config: &Config) -> (Hardware, Arc<Self>) {
        let quarantine = Quarantine::at(&config.work_dir, &process::host_boot());
        let known = hardware.gpus.iter().map(|gpu| gpu.uuid.clone()).filter(|uuid| !is_made_up(uuid)).collect();
        let state = State {
            gate: Gate::default(),
            quarantined: BTreeMap::new(),
            moments: Moments::default(),
            held: BTreeMap::new(),
            readings: BTreeMap::new(),
            withheld: BTreeMap::new(),
            looked: Instant::now(),
            hangs: false,
        };
        let (state, quarantine) = (Mutex::new(state), Mutex::new(quarantine));
        let board = Self { known, state, quarantine, changed: Notify::new(), came: Notify::new() };
        // So that the first registration already says what an earlier agent knew.
        board.keep(&[], clock::now(), false);
        (hardware, Arc::new(board))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> BTreeSet<String> {
        self.state().held.keys().cloned().collect()
    }

    /// Takes note of a look that began when `held` were held.
    fn take(&self, look: &Look, mut held: BTreeSet<String>, now: Timestamp, is_moment: bool) {
        let broken = {
            let mut state = self.state();
            // An attempt that ended meanwhile may still have been seen.
            held.extend(state.held.keys().cloned());
            if state.hangs {
                tracing::info!("the GPUs' driver answers again");
            }
            state.hangs = false;
            state.looked = Instant::now();
            let readings = look.iter().flatten().map(|seen| (seen.reading.uuid.clone(), seen.reading.clone()));
            state.readings = readings.collect();
            state.gate.take(look, &held)
        };
        self.keep(&broken, now, is_moment);
    }

    /// No look has ended for so long: nothing is known of them any more.
    fn hangs(&self, state: &mut State, silence: Duration) {
        let detail = format!("the driver has not answered for {} s", silence.as_secs());
        tracing::error!("{detail}; the GPUs are withheld until it does");
        state.hangs = true;
        state.gate.hangs(&detail);
        state.readings.clear();
        self.settle(state, clock::now(), false);
    }

    /// Writes down what is broken, and reads what a person has released.
    fn keep(&self, broken: &[Broken], now: Timestamp, is_moment: bool) {
        let quarantined = {
            let mut quarantine = self.quarantine.lock().unwrap_or_else(PoisonError::into_inner);
            for broken in broken {
                if let Err(error) = quarantine.add(broken, now) {
                    tracing::error!("the quarantine of {} cannot be written down: {error}", broken.uuid);
                }
            }
            quarantine.entries().iter().map(|(uuid, entry)| (uuid.clone(), entry.reason.clone())).collect()
        };
        let mut state = self.state();
        state.quarantined = quarantined;
        self.settle(&mut state, now, is_moment);
    }

    /// What follows for the next jobs, and whether somebody has to be told at once.
    fn settle(&self, state: &mut State, now: Timestamp, is_moment: bool) {
        let withheld: BTreeMap<String, Withheld> = self
            .known
            .iter()
            .filter_map(|uuid| {
                let quarantined = state.quarantined.get(uuid).map(String::as_str);
                Some((uuid.clone(), state.gate.withheld(uuid, quarantined)?))
            })
            .collect();
        let changed = withheld != state.withheld;
        state.withheld = withheld;
        if is_moment || changed {
            let reading = |uuid: &String| GpuReading {
                uuid: uuid.clone(),
                withheld: state.withheld.get(uuid).cloned(),
                ..state.readings.get(uuid).cloned().unwrap_or_default()
            };
            let gpus = self.known.iter().map(reading).collect();
            state.moments.add(Telemetry { at: now, gpus });
        }
        if changed {
            self.changed.notify_one();
        }
    }
}

/// Looks at once, then every few seconds and whenever somebody asks, until nobody is left to ask.
fn sample(mut provider: Box<dyn Provider>, board: &Board, asked: &Receiver<oneshot::Sender<Look>>) {
    let mut next = Instant::now();
    loop {
        let ask = match asked.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(ask) => Some(ask),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let held = board.held();
        let look = whole(provider.look(), &board.known);
        board.take(&look, held, clock::now(), ask.is_none());
        match ask {
            // Nobody may be left to hear it.
            Some(ask) => drop(ask.send(look)),
            None => next = Instant::now() + PERIOD,
        }
    }
}
