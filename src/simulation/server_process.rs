//! The server's process: the server's own code on a runtime of its own, which a crash drops with all of its tasks.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::Context as _;
use app::domain::disk_watermark::DiskFloor;
use app::domain::ids::JobId;
use app::simulation;
use app::threads::wait_for_thread;
use axum::Router;
use axum::body::Body;
use axum::http::Response;
use bytes::Bytes;
use clap::Parser;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::network::{IncomingRequest, Network, ResponseBody};
use super::run::STEP;
use crate::args::ServerArgs;
use crate::boot;
use crate::clock::{ClockReadings, SlewedClock};
use crate::disk::{DiskProbe, DiskSpace};
use crate::files::audit_checkpoints::AuditCheckpointFile;
use crate::http::state::{AppParts, AppState};
use crate::random::Random;
use crate::service::access::Blocklist;
use crate::service::context::disk_space::DiskSpaceGuard;
use crate::service::{ServerPolicy, ServiceParts, Services, access};
use crate::store::commit_group::GroupHooks;
use crate::store::sqlite::SqliteStore;
use crate::store::{Result, Store, StoreError, TransactionWork, Tx};
use crate::vault::Vault;
use crate::{http, loops};

/// The admin's token.
pub const ADMIN_TOKEN: &str = "st_admin-token-of-the-simulation";
/// How long a write waits for the disk at most, in ms, before and after its commit.
pub const MAX_WRITE_DELAY_MS: u64 = 8;
/// The time of day at which simulations begin, in ms since 1970.
const START_OF_TIME: i64 = 1_767_225_600_000;

/// The state of the server's machine, which outlives its processes.
#[derive(Debug)]
pub struct ServerMachine {
    pub is_disk_full: AtomicBool,
    pub max_write_delay_ms: AtomicU64,
    /// By how much its wall clock was set, in ms.
    pub clock_offset: AtomicI64,
    /// By how much its wall clock is too fast, in millionths.
    pub clock_drift_ppm: AtomicI64,
}

/// The only machine with a server.
pub static MACHINE: LazyLock<Arc<ServerMachine>> = LazyLock::new(|| {
    Arc::new(ServerMachine {
        is_disk_full: AtomicBool::new(false),
        max_write_delay_ms: AtomicU64::new(MAX_WRITE_DELAY_MS),
        clock_offset: AtomicI64::new(0),
        clock_drift_ppm: AtomicI64::new(0),
    })
});

fn read_clocks() -> ClockReadings {
    let elapsed = i64::try_from(simulation::time().as_millis()).unwrap_or(i64::MAX);
    let drift = elapsed * MACHINE.clock_drift_ppm.load(Ordering::Relaxed) / 1_000_000;
    let wall = START_OF_TIME + elapsed + drift + MACHINE.clock_offset.load(Ordering::Relaxed);
    ClockReadings { wall, uptime: elapsed + 1_000_000, awake: elapsed + 1_000_000 }
}

#[derive(Debug)]
struct SimulatedRandom;

impl Random for SimulatedRandom {
    fn fill(&self, buffer: &mut [u8]) {
        simulation::fill_random(buffer);
    }
}

impl DiskProbe for ServerMachine {
    fn space(&self) -> std::io::Result<DiskSpace> {
        let free = if self.is_disk_full.load(Ordering::Relaxed) { 0 } else { 1 << 40 };
        Ok(DiskSpace { total: 1 << 40, free })
    }
}

/// A database on a disk that is slow, and sometimes full: a crash finds use cases before and after their commit.
struct SlowStore {
    inner: SqliteStore,
    machine: Arc<ServerMachine>,
}

async fn wait_for_disk() {
    let max_delay = MACHINE.max_write_delay_ms.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(simulation::random_u64() % (max_delay + 1))).await;
}

impl Store for SlowStore {
    fn write(&self, work: TransactionWork) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            wait_for_disk().await;
            if self.machine.is_disk_full.load(Ordering::Relaxed) {
                return Err(StoreError::Unavailable("database or disk is full".to_owned()));
            }
            let result = self.inner.write(work).await;
            wait_for_disk().await;
            result
        })
    }

    fn set_hooks(&self, hooks: GroupHooks) {
        self.inner.set_hooks(hooks);
    }

    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        self.inner.read()
    }

    fn read_recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        self.inner.read_recent()
    }

    fn take_changed_jobs(&self) -> Option<BTreeSet<JobId>> {
        self.inner.take_changed_jobs()
    }

    fn newest_schema(&self) -> i64 {
        self.inner.newest_schema()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

pub struct ServerProcess {
    runtime: Runtime,
    shutdown: CancellationToken,
}

impl ServerProcess {
    /// Starts a server with this data directory, and connects it to the network.
    pub fn start(data: &Path, network: &Network, time: Duration, number: u64) -> anyhow::Result<Self> {
        // Tasks that another thread wakes come first at any time, whenever the pool's own happen to be woken.
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).global_queue_interval(1).build()?;
        let shutdown = CancellationToken::new();
        let (sender, requests) = mpsc::unbounded_channel();
        runtime.block_on(async {
            simulation::enter(time);
            let app = open(data, shutdown.clone(), number).await.context("the server does not start")?;
            let tasks = TaskTracker::new();
            loops::start(&app.services, &tasks, &shutdown);
            tokio::spawn(serve(http::router(app), requests));
            anyhow::Ok(())
        })?;
        simulation::leave(time);
        network.set_server(Some(sender));
        Ok(Self { runtime, shutdown })
    }

    /// Lets the server run for this long.
    pub fn run(&self, time: Duration, step: Duration) {
        self.runtime.block_on(async {
            simulation::enter(time);
            tokio::time::sleep(step).await;
        });
    }

    /// Ends the process, with everything that it was doing.
    pub fn kill(self, network: &Network) {
        network.set_server(None);
        drop(self.runtime);
    }

    /// Asks the server to stop; its streams end. It is killed later.
    pub fn stop(&self, network: &Network) {
        network.set_server(None);
        self.shutdown.cancel();
    }
}

/// Opens the server as `boot` does.
async fn open(data: &Path, shutdown: CancellationToken, number: u64) -> anyhow::Result<AppState> {
    let name = format!("c_{number}");
    let inner = wait_for_thread(SqliteStore::open(data, &name)).await?;
    let store = Arc::new(SlowStore { inner, machine: Arc::clone(&MACHINE) });
    let random = Arc::new(SimulatedRandom);
    let signing_key = access::load_token_signing_key(&*store, &*random).await;
    let parts = ServiceParts {
        token_signing_key: signing_key.map_err(|error| anyhow::anyhow!("{error:?}"))?,
        store,
        clock: Arc::new(SlewedClock::with_source(read_clocks)),
        random,
        policy: ServerPolicy::default(),
        server: name.clone(),
        vault: Vault::new(data.join("secrets.key")),
        disk_space: DiskSpaceGuard::new(MACHINE.clone(), DiskFloor::Bytes(2 << 30), DiskFloor::Bytes(512 << 20)),
        blocklist: Blocklist::default(),
        checkpoints: AuditCheckpointFile::open(data, "sqlite", [7; 32])?,
    };
    let services = Arc::new(Services::open(parts, data)?);
    let failed = |error| anyhow::anyhow!("{error:?}");
    services.access.apply_bootstrap_token(ADMIN_TOKEN).await.map_err(failed)?;
    let args = ServerCommand::try_parse_from(["server"])?.server;
    let setup_code = boot::prepare_services(&args, &services, data).await;
    anyhow::ensure!(matches!(setup_code, Ok(None)), "the server cannot be prepared");
    Ok(AppState::new(AppParts { shutdown, ..AppParts::without_listener(services, data, name) }))
}

#[derive(Parser)]
struct ServerCommand {
    #[command(flatten)]
    server: ServerArgs,
}

async fn serve(router: Router, mut requests: mpsc::UnboundedReceiver<IncomingRequest>) {
    while let Some(incoming) = requests.recv().await {
        tokio::spawn(answer(router.clone(), incoming));
    }
}

/// Answers a request, unless its sender gives up before.
async fn answer(router: Router, IncomingRequest { request, mut reply }: IncomingRequest) {
    let handled = async {
        // All that hosts have sent is there when the server runs. Spread over a step, a kill finds some half done.
        let step_ms = u64::try_from(STEP.as_millis()).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(simulation::random_u64() % step_ms)).await;
        router.oneshot(request).await
    };
    let response = tokio::select! {
        biased;
        () = reply.closed() => return,
        Ok(response) = handled => response,
    };
    let (parts, body) = response.into_parts();
    let (sender, received): (_, ResponseBody) = mpsc::unbounded_channel();
    if reply.send(Response::from_parts(parts, received)).is_ok() {
        send_body(body, sender).await;
    }
}

/// Sends the body until its end, or until its receiver is gone.
async fn send_body(mut body: Body, sender: mpsc::UnboundedSender<Option<Bytes>>) {
    loop {
        let frame = tokio::select! {
            biased;
            () = sender.closed() => return,
            frame = body.frame() => frame,
        };
        let part = match frame {
            Some(Ok(frame)) => frame.into_data().ok(),
            // The connection breaks.
            Some(Err(_)) => return,
            None => {
                // The receiver may be gone.
                let _ = sender.send(None);
                return;
            }
        };
        if let Some(part) = part {
            let _ = sender.send(Some(part));
        }
    }
}
