//! From a command line to a server that listens, and back.

mod audit;
pub mod connections;
pub mod exit;
pub mod import;
pub mod local;
pub mod offline;
mod operator;
mod policy;
pub mod restored;
pub mod serve;
mod site;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use app::domain::watermark::Floor;
use app::logging::{Format, Lines, queue};
use app::protocol::system::SettingView;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing_subscriber::EnvFilter;

use self::connections::Connections;
use self::exit::Exit;
use self::local::LocalAgent;
use self::operator::Operator;
use crate::cli::visible;
use crate::cli::{Secret, ServerArgs};
use crate::clock::{Clock, SteadyClock};
use crate::disk::DiskOf;
use crate::files::artifacts::Artifacts;
use crate::files::checkpoints::Checkpoints;
use crate::files::logs::Logs;
use crate::files::uploads::Uploads;
use crate::flashes::Flashes;
use crate::http::access::Mode;
use crate::http::ui::making::Making;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::random::{OsRandom, Random};
use crate::service::access::Doors;
use crate::service::audit::checkpoint::Signer;
use crate::service::audit::refused::Floods;
use crate::service::contention::Contention;
use crate::service::gpu_history::Histories;
use crate::service::gpus::Readings;
use crate::service::leader::Leadership;
use crate::service::presence::Presence;
use crate::service::space::Room;
use crate::service::storing::Storing;
use crate::service::{Core, Policy, access, dispatch};
use crate::state::{App, Parts};
use crate::store::Store;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::tls::{Tls, Wanted, self_signed};
use crate::vault::Vault;
use crate::{http, lifecycle, loops, tls, tokens};

/// Runs the server until it is told to stop.
pub fn main(args: &ServerArgs, settings: Vec<SettingView>) -> ExitCode {
    start_logging(args.verbose, args.ops.log_format);
    keep_memory_private();
    for (flag, instead) in visible::secrets(std::env::args_os().map(|arg| arg.to_string_lossy().into_owned())) {
        tracing::warn!("{flag} shows a secret in the list of processes; use {instead}");
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Rendering can stall with one worker thread only (leptos issue 4647).
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores.max(4)).enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(args, settings)),
        Err(error) => Err(Exit::failed(format!("the runtime could not be started: {error}"))),
    };
    queue::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(),
    }
}

/// Nobody but root may read this process's memory and environment, which have the secrets of everybody; no core dump has
/// them either.
fn keep_memory_private() {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "other processes of this user can read the memory of this one");
    }
}

fn start_logging(verbose: bool, format: Format) {
    let fallback = if verbose { "simpletuner=debug,info" } else { "info,sqlx=warn" };
    let filter = EnvFilter::try_from_env("SIMPLETUNER_LOG").unwrap_or_else(|_| EnvFilter::new(fallback));
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = Lines { format, with_target: true, around: crate::http::request::around };
    // What cannot be written is lost. Told on stderr, as is usual, it would be a panic of whatever has logged.
    let log = tracing_subscriber::fmt().log_internal_errors(false);
    let log = log.with_ansi(ansi && format == Format::Text).event_format(lines);
    log.with_env_filter(filter).with_writer(|| queue::Queued).init();
    queue::start(std::io::stderr());
    if format == Format::Json {
        // What goes wrong must not be the one thing that a collector cannot read.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task panicked")));
    }
}

async fn run(args: &ServerArgs, settings: Vec<SettingView>) -> Result<(), Exit> {
    refuse_open_single_user(args)?;
    let account = args.local.account()?;
    let wanted = Wanted::of(args.edge.ssl, args.edge.ssl_cert.as_deref(), args.edge.ssl_key.as_deref())
        .map_err(|why| Exit::usage(why.to_owned()))?;
    let data = data_directory(args.data_dir.as_deref())?;
    let shutdown = CancellationToken::new();
    lifecycle::stop_on_signals(shutdown.clone()).map_err(|error| Exit::failed(error.to_string()))?;
    let mut core = open(args.database_url.as_ref(), &policy::of(args), &data).await?;
    if let Some(file) = &args.secret_key_file {
        core.vault = Vault::at(file.clone());
    }
    core.doors.blocklist = args.accounts.blocklist().map_err(Exit::config)?;
    core.room = Room::new(Arc::new(DiskOf(data.clone())), args.ops.disk_min_free, args.ops.disk_min_free_running);
    let core = Arc::new(core);
    core.store.attach(dispatch::hooks(&core));
    core.set_clock().await.map_err(Exit::refused)?;
    // Before anything is recorded, so that a chain of which nobody has signed the beginning is not ours.
    core.sign_audit().await.map_err(Exit::refused)?;
    restored::take_up(&core, &data).await?;
    admit(args, &core).await?;
    if let Some(directory) = &args.configs_dir {
        import::configurations(&core, directory).await?;
    }
    core.take_part().await.map_err(Exit::refused)?;
    core.recall().await.map_err(Exit::refused)?;
    let listener = bind(args).await?;
    let watched = match args.ops.metrics_addr {
        Some(address) => Some(bind_to(address, "--metrics-addr").await?),
        None => None,
    };
    let address = listener.local_addr().map_err(|error| Exit::failed(error.to_string()))?;
    let tls = encryption(wanted, args, &data, &core)?;
    let app = App::new(Parts {
        core: Arc::clone(&core),
        mode: if args.single_user { Mode::SingleUser } else { Mode::Accounts },
        shutdown: shutdown.clone(),
        epoch: tokens::hex(&core.random.bytes::<6>()),
        address: address.to_string(),
        tls: tls.clone(),
        trusted_proxies: args.edge.trusted_proxies.clone(),
        flashes: Flashes::within(args.limits.flashes()),
        making: Making::default(),
        data: data.clone(),
        settings,
        leptos: site::options(&data, address).map_err(Exit::failed)?,
    });
    let tasks = TaskTracker::new();
    loops::start(&core, &tasks, &shutdown);
    let shipper = audit::shipper(args, &core, &data);
    if let Some(shipper) = shipper.clone() {
        let shutdown = shutdown.clone();
        tasks.spawn(async move { shipper.keep(shutdown).await });
    }
    tasks.spawn(shutdown.clone().run_until_cancelled_owned(forget_flashes(app.clone())));
    match &tls {
        None => {
            tracing::info!("listening on http://{address}");
            if app.speaks_plainly() {
                tracing::warn!("{}", http::system::PLAIN_HTTP);
            }
        }
        Some(tls) => {
            tracing::info!("listening on https://{address}");
            tracing::info!("agents know this server by --orchestrator-fingerprint {}", tls.fingerprint());
            let follow = tls.clone().follow(Arc::clone(&core.clock), tls::LOOK);
            tasks.spawn(shutdown.clone().run_until_cancelled_owned(follow));
        }
    }
    let operator = Operator::let_in(&core, &data, address, tls.as_ref());
    tasks.spawn(operator.keep(shutdown.clone()));
    if let Some(account) = account {
        let local = LocalAgent::new(args, account, address, tls.clone(), &data);
        tasks.spawn(local.keep(Arc::clone(&core), args.local.local, shutdown.clone()));
    }
    let room = Arc::new(Connections::of(args));
    if let Some(listener) = watched {
        tracing::info!("metrics are on http://{}/metrics", listener.local_addr().unwrap_or(address));
        let (router, shutdown, room) = (http::health::apart(app.clone()), shutdown.clone(), Arc::clone(&room));
        tasks.spawn(async move { serve::serve(listener, router, None, &room, &shutdown).await });
    }
    serve::serve(listener, http::router(app), tls.as_ref(), &room, &shutdown).await;
    tasks.close();
    tasks.wait().await;
    if let Err(refusal) = core.flush_used().await {
        tracing::warn!(?refusal, "the last uses of tokens and sessions were not written");
    }
    if let Err(refusal) = core.flush_presence().await {
        tracing::warn!(?refusal, "the last times of contact were not written");
    }
    if let Err(refusal) = core.keep_histories().await {
        tracing::warn!(?refusal, "how GPUs did was not written");
    }
    audit::end_audit(&core, shipper.as_deref()).await;
    if let Err(refusal) = core.leave().await {
        tracing::warn!(?refusal, "the other servers were not told; they find out by themselves");
    }
    core.store.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Gives back the memory of flashes whose page did not come.
async fn forget_flashes(app: App) {
    loop {
        tokio::time::sleep(Duration::from_secs(10)).await;
        app.flashes.sweep(app.core.now());
    }
}

/// The data directory that is meant, whether it exists or not.
pub fn chosen_directory(named: Option<&Path>) -> Result<PathBuf, Exit> {
    let home = || {
        let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")))
    };
    let chosen = named.map(Path::to_owned).or_else(|| Some(home()?.join("simpletuner")));
    chosen.ok_or_else(|| Exit::config("no data directory is known; name one with --data-dir".to_owned()))
}

fn data_directory(named: Option<&Path>) -> Result<PathBuf, Exit> {
    let data = chosen_directory(named)?;
    std::fs::create_dir_all(&data).map_err(|error| {
        Exit::config(format!(
            "the data directory {} cannot be made ({error}); choose another with --data-dir",
            data.display()
        ))
    })?;
    warn_of_readers(&data);
    // Artifacts are named relative to it, wherever the process goes.
    std::path::absolute(&data).map_err(|error| Exit::config(format!("{}: {error}", data.display())))
}

/// What is made here is nobody else's ([`crate::main`] sees to it); a directory that was there may be.
fn warn_of_readers(data: &Path) {
    let mode = std::fs::metadata(data).map_or(0, |found| found.permissions().mode());
    if mode & 0o077 != 0 {
        tracing::warn!(
            "other users of this machine can look into the data directory; if they should not: chmod 700 {}",
            data.display()
        );
    }
}

/// TLS with the certificate that is wanted.
fn encryption(wanted: Wanted, args: &ServerArgs, data: &Path, core: &Core) -> Result<Option<Tls>, Exit> {
    tls::install_provider();
    let pair = match wanted {
        Wanted::Nothing => return Ok(None),
        Wanted::Given(pair) => pair,
        Wanted::Own => {
            let hostname = gethostname::gethostname();
            let names = self_signed::names(args.host, self_signed::interfaces(), &hostname.to_string_lossy());
            self_signed::keep(&data.join("tls"), &names, core.now()).map_err(Exit::config)?
        }
    };
    Tls::open(pair, &*core.clock).map(Some).map_err(Exit::config)
}

async fn open(database_url: Option<&Secret>, policy: &Policy, data: &Path) -> Result<Core, Exit> {
    let (random, clock): (Arc<dyn Random>, Arc<dyn Clock>) = (Arc::new(OsRandom), Arc::new(SteadyClock::new()));
    let chain = format!("c_{}", tokens::hex(&random.bytes::<8>()));
    let store = open_store(database_url, data, &chain).await.map_err(|error| Exit::config(format!("{error:#}")))?;
    let files = |error: String| Exit::config(format!("the data directory {} cannot be used: {error}", data.display()));
    let database = if database_url.is_some() { "postgres" } else { "sqlite" };
    let checkpoints = Checkpoints::open(data, database, random.bytes()).map_err(|error| files(error.to_string()))?;
    Ok(Core {
        job_token_key: access::job_token_key(&*store, &*random).await.map_err(Exit::refused)?,
        last_job_id: Mutex::default(),
        store,
        hub: Hub::default(),
        presence: Presence::default(),
        readings: Readings::default(),
        histories: Histories::at(data),
        contention: Contention::default(),
        doors: Doors::default(),
        floods: Floods::default(),
        signer: Signer::new(checkpoints),
        clock: Arc::clone(&clock),
        random,
        logs: Logs::open(data.join("logs")).map_err(|error| files(error.to_string()))?,
        searches: policy.bounds.searches(),
        event_streams: policy.bounds.event_streams(),
        artifacts: Artifacts::open(&data.join("artifacts")).map_err(|error| files(error.to_string()))?,
        uploads: Uploads::open(data.join("uploads")).map_err(|error| files(error.to_string()))?,
        storing: Storing::default(),
        policy: *policy,
        vault: Vault::at(key_beside(data)),
        server: chain,
        leadership: Leadership::default(),
        file_bytes: crate::service::file_bytes::FileBytes::default(),
        metrics: Metrics::new(clock.now()),
        room: Room::new(Arc::new(DiskOf(data.to_owned())), Floor::Bytes(0), Floor::Bytes(0)),
    })
}

/// The key for secrets: beside the data directory, and named like it.
pub fn key_beside(data: &Path) -> PathBuf {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    data.with_file_name(format!("{name}.key"))
}

async fn open_store(database_url: Option<&Secret>, data: &Path, chain: &str) -> anyhow::Result<Arc<dyn Store>> {
    Ok(match database_url {
        None => Arc::new(SqliteStore::open(data, chain).await?),
        Some(url) => Arc::new(PostgresStore::open(&url.0, chain).await?),
    })
}

/// Refuses a server that anybody could use.
pub fn refuse_open_single_user(args: &ServerArgs) -> Result<(), Exit> {
    if !args.single_user || args.host.is_loopback() {
        return Ok(());
    }
    Err(Exit::usage(format!(
        "--single-user has no accounts and is refused on {}; use --host 127.0.0.1, or leave --single-user out",
        args.host
    )))
}

/// The admin token that automation was given, if any.
pub fn bootstrap_token(args: &ServerArgs) -> Result<Option<String>, Exit> {
    let from_file = |path: &PathBuf| {
        let text = std::fs::read_to_string(path);
        text.map_err(|error| Exit::config(format!("the admin token file {} cannot be read: {error}", path.display())))
    };
    let from_file = args.bootstrap_admin_token_file.as_ref().map(from_file).transpose()?;
    let token = args.bootstrap_admin_token.as_ref().map(|secret| secret.0.clone()).or(from_file);
    if token.as_ref().is_some_and(|token| token.trim().len() < 16) {
        return Err(Exit::config("the bootstrap admin token is too short; use at least 16 characters".to_owned()));
    }
    Ok(token)
}

/// Makes sure that somebody can log in, and says how.
async fn admit(args: &ServerArgs, core: &Arc<Core>) -> Result<(), Exit> {
    if let Some(token) = bootstrap_token(args)? {
        core.bootstrap_token(&token).await.map_err(Exit::refused)?;
    }
    if args.single_user {
        tracing::info!("single-user mode: whoever reaches the loopback address is the admin");
    } else if let Some(code) = core.setup_code().await.map_err(Exit::refused)? {
        tracing::warn!("nobody can log in yet; the one-time setup code for the login page is {code}");
    }
    Ok(())
}

async fn bind(args: &ServerArgs) -> Result<TcpListener, Exit> {
    bind_to(SocketAddr::new(args.host, args.port), "--port").await
}

/// Listens on an address that this flag has named.
pub async fn bind_to(address: SocketAddr, flag: &str) -> Result<TcpListener, Exit> {
    let (host, port) = (address.ip(), address.port());
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Exit::unavailable(format!(
            "port {port} on {host} is in use; stop what uses it, or choose another with {flag}"
        )),
        std::io::ErrorKind::PermissionDenied => Exit::unavailable(format!(
            "port {port} needs more rights than this user has; choose one above 1023 with {flag}"
        )),
        _ => Exit::unavailable(format!("{address} cannot be listened on ({error}); choose another with {flag}")),
    })
}
