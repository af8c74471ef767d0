//! Starts, runs and stops the server.

mod audit;
mod banner;
mod client_socket;
pub mod config_import;
pub mod connections;
mod http2;
pub mod local_agent;
mod operator;
mod policy;
pub mod restore_marker;
pub mod serve;
mod site;
pub mod without_listener;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use app::domain::disk_watermark::DiskFloor;
use app::logging::{LogFormatter, LogLineFormat, background_writer};
use app::protocol::system::SettingView;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing_subscriber::EnvFilter;

use self::connections::ConnectionLimiter;
use self::local_agent::LocalAgent;
use self::operator::OperatorAccess;
use crate::args::local::LocalAccount;
use crate::args::{SecretString, ServerArgs, exposed_secrets};
use crate::audit_shipping::AuditShipper;
use crate::clock::{Clock, SlewedClock};
use crate::data_dir::create_data_dir;
use crate::disk::PathDisk;
use crate::exit::ExitError;
use crate::files::audit_checkpoints::AuditCheckpointFile;
use crate::flashes::Flashes;
use crate::http::render_limiter::RenderLimiter;
use crate::http::state::{AppParts, AppState, AuthMode};
use crate::random::{OsRandom, Random};
use crate::service::access::Blocklist;
use crate::service::context::disk_space::DiskSpaceGuard;
use crate::service::{ServerPolicy, ServiceParts, Services, access};
use crate::store::Store;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::tls::{Tls, TlsMode, self_signed};
use crate::vault::Vault;
use crate::{http, lifecycle, loops, tls, tokens};

/// Runs the server until it is stopped.
pub fn main(args: &ServerArgs, settings: Vec<SettingView>) -> ExitCode {
    start_logging(args.verbose, args.ops.log_format);
    protect_memory();
    for (flag, alternative) in
        exposed_secrets::exposed_flags(std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()))
    {
        tracing::warn!("{flag} exposes a secret in the process list; use {alternative}");
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Rendering can stall with a single worker thread (leptos issue 4647).
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores.max(4)).enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(args, settings)),
        Err(error) => Err(ExitError::failed(format!("cannot start the async runtime: {error}"))),
    };
    background_writer::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.print(),
    }
}

/// Only root may read this process's memory and environment, which contain secrets; core dumps are disabled, too.
fn protect_memory() {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "failed to protect the process memory from other processes of this user");
    }
}

fn start_logging(verbose: bool, format: LogLineFormat) {
    let fallback = if verbose { "simpletuner=debug,info" } else { "info,sqlx=warn" };
    let filter = log_filter(std::env::var("SIMPLETUNER_LOG").ok().as_deref(), fallback);
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = LogFormatter { format, with_target: true, context: crate::http::request_context::log_context };
    // A log line that cannot be written is dropped. By default the error goes to stderr and would panic the caller.
    let log = tracing_subscriber::fmt().log_internal_errors(false);
    let log = log.with_ansi(ansi && format == LogLineFormat::Text).event_format(lines);
    log.with_env_filter(filter).with_writer(|| background_writer::LogQueueWriter).init();
    background_writer::start(std::io::stderr());
    if format == LogLineFormat::Json {
        // Panics must be logged in the configured format, too.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "task panicked")));
    }
}

/// Returns the filter that was chosen, if it is valid. An empty one would drop all but errors.
fn log_filter(chosen: Option<&str>, fallback: &str) -> EnvFilter {
    let chosen = chosen.filter(|text| !text.is_empty()).and_then(|text| EnvFilter::try_new(text).ok());
    chosen.unwrap_or_else(|| EnvFilter::new(fallback))
}

async fn run(args: &ServerArgs, settings: Vec<SettingView>) -> Result<(), ExitError> {
    let (server, listeners) = RunningServer::open(args, settings).await?;
    server.start_tasks(args);
    server.serve(args, listeners).await;
    server.shut_down().await;
    tracing::info!("stopped");
    Ok(())
}

/// The listeners of a server.
struct Listeners {
    requests: TcpListener,
    /// For metrics only (`--metrics-addr`).
    metrics: Option<TcpListener>,
}

impl Listeners {
    async fn bind(args: &ServerArgs) -> Result<Self, ExitError> {
        let requests = bind(args).await?;
        let metrics = match args.ops.metrics_addr {
            Some(address) => Some(bind_to(address, "--metrics-addr").await?),
            None => None,
        };
        Ok(Self { requests, metrics })
    }
}

/// An open server, with what its tasks share.
struct RunningServer {
    app: AppState,
    services: Arc<Services>,
    address: SocketAddr,
    tls: Option<Tls>,
    shipper: Option<Arc<AuditShipper>>,
    /// The user that runs the agent for this host's GPUs, unless it is off.
    local_account: Option<LocalAccount>,
    data: PathBuf,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl RunningServer {
    /// Opens database, listeners and certificate; nothing is served yet.
    async fn open(args: &ServerArgs, settings: Vec<SettingView>) -> Result<(Self, Listeners), ExitError> {
        check_single_user(args)?;
        let local_account = args.local.account()?;
        let tls_mode = TlsMode::from_flags(args.edge.ssl, args.edge.ssl_cert.as_deref(), args.edge.ssl_key.as_deref())
            .map_err(|message| ExitError::usage(message.to_owned()))?;
        let data = create_data_dir(args.data_dir.as_deref())?;
        let shutdown = CancellationToken::new();
        lifecycle::stop_on_signals(shutdown.clone()).map_err(|error| ExitError::failed(error.to_string()))?;
        let services = open_configured_services(args, &data).await?;
        let setup_code = prepare_services(args, &services, &data).await?;
        let listeners = Listeners::bind(args).await?;
        let address = listeners.requests.local_addr().map_err(|error| ExitError::failed(error.to_string()))?;
        let tls = open_tls(tls_mode, args, &data, &services)?;
        let app = AppState::new(AppParts {
            services: Arc::clone(&services),
            mode: if args.single_user { AuthMode::SingleUser } else { AuthMode::Accounts },
            shutdown: shutdown.clone(),
            epoch: tokens::hex(&services.context.random.bytes::<6>()),
            address: address.to_string(),
            tls: tls.clone(),
            trusted_proxies: args.edge.trusted_proxies.clone(),
            flashes: Flashes::with_limits(args.limits.flash_limits()),
            render_limiter: RenderLimiter::default(),
            data_dir: data.clone(),
            settings,
            leptos_options: site::leptos_options(&data, address).map_err(ExitError::failed)?,
        });
        if let Some(code) = setup_code {
            let setup_url = banner::setup_url(tls.is_some(), address, &code);
            tracing::warn!("no users yet; create the first admin with the one-time setup code: {setup_url}");
        }
        let shipper = audit::build_shipper(args, &services, &data);
        let tasks = TaskTracker::new();
        let server = Self { app, services, address, tls, shipper, local_account, data, tasks, shutdown };
        Ok((server, listeners))
    }

    /// Starts the tasks that run beside requests until the server stops.
    fn start_tasks(&self, args: &ServerArgs) {
        let Self { app, services, tasks, shutdown, .. } = self;
        loops::start(services, tasks, shutdown);
        if let Some(shipper) = self.shipper.clone() {
            let shutdown = shutdown.clone();
            tasks.spawn(async move { shipper.run(shutdown).await });
        }
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(sweep_flashes(app.clone())));
        banner::log_address(app, self.tls.as_ref(), self.address);
        if let Some(tls) = &self.tls {
            let watch = tls.clone().watch_files(Arc::clone(&services.context.clock), tls::RELOAD_INTERVAL);
            tasks.spawn(shutdown.clone().run_until_cancelled_owned(watch));
        }
        let operator = OperatorAccess::publish(services, &self.data, self.address, self.tls.as_ref());
        tasks.spawn(operator.keep_current(shutdown.clone()));
        if let Some(account) = self.local_account.clone() {
            let local = LocalAgent::new(args, account, self.address, self.tls.clone(), &self.data);
            tasks.spawn(local.run(Arc::clone(services), args.local.local, shutdown.clone()));
        }
    }

    /// Serves requests until the server stops.
    async fn serve(&self, args: &ServerArgs, listeners: Listeners) {
        let limiter = Arc::new(ConnectionLimiter::from_args(args));
        if let Some(listener) = listeners.metrics {
            tracing::info!("serving metrics on http://{}/metrics", listener.local_addr().unwrap_or(self.address));
            let router = http::system::health::metrics_router(self.app.clone());
            let (shutdown, limiter) = (self.shutdown.clone(), Arc::clone(&limiter));
            self.tasks.spawn(async move { serve::serve(listener, router, None, &limiter, &shutdown).await });
        }
        let router = http::router(self.app.clone());
        serve::serve(listeners.requests, router, self.tls.as_ref(), &limiter, &self.shutdown).await;
    }

    /// Waits for the tasks, and writes what is only in memory.
    async fn shut_down(self) {
        let services = &self.services;
        self.tasks.close();
        self.tasks.wait().await;
        if let Err(error) = services.access.flush_last_used().await {
            tracing::warn!(?error, "shutdown: failed to flush the last uses of tokens and sessions");
        }
        if let Err(error) = services.agents.flush_presence().await {
            tracing::warn!(?error, "shutdown: failed to flush worker contact times");
        }
        if let Err(error) = services.gpus.save_gpu_history().await {
            tracing::warn!(?error, "shutdown: failed to flush GPU history");
        }
        audit::close_audit(services, self.shipper.as_deref()).await;
        if let Err(error) = services.system.resign().await {
            tracing::warn!(?error, "shutdown: failed to notify other servers; they detect it automatically");
        }
        services.context.store.close().await;
    }
}

/// Opens the services with the settings of the command line.
async fn open_configured_services(args: &ServerArgs, data: &Path) -> Result<Arc<Services>, ExitError> {
    let parts = open_parts(args.database_url.as_ref(), &policy::from_args(args), data).await?;
    let parts = ServiceParts {
        vault: args.secret_key_file.clone().map_or(parts.vault, Vault::new),
        blocklist: args.accounts.blocklist().map_err(ExitError::config)?,
        disk_space: DiskSpaceGuard::new(
            Arc::new(PathDisk(data.to_owned())),
            args.ops.disk_min_free,
            args.ops.disk_min_free_running,
        ),
        ..parts
    };
    Ok(Arc::new(open_services(parts, data)?))
}

/// Prepares the database for requests; returns a setup code if there is no user yet.
pub async fn prepare_services(
    args: &ServerArgs,
    services: &Arc<Services>,
    data: &Path,
) -> Result<Option<String>, ExitError> {
    services.system.sync_clock_at_start().await.map_err(ExitError::from_service_error)?;
    // Before anything is recorded: every chain must begin with a signature.
    services.audit.sign_audit().await.map_err(ExitError::from_service_error)?;
    restore_marker::complete_restore(services, data).await?;
    let setup_code = prepare_first_sign_in(args, services).await?;
    if let Some(directory) = &args.configs_dir {
        config_import::import_configs(services, directory).await?;
    }
    services.system.renew_leadership().await.map_err(ExitError::from_service_error)?;
    services.system.warm_cache().await.map_err(ExitError::from_service_error)?;
    Ok(setup_code)
}

/// Frees the memory of flash messages whose page was never requested.
async fn sweep_flashes(app: AppState) {
    loop {
        tokio::time::sleep(Duration::from_secs(10)).await;
        app.flashes.sweep(app.services.context.now());
    }
}

/// Loads the certificate for TLS.
fn open_tls(mode: TlsMode, args: &ServerArgs, data: &Path, services: &Services) -> Result<Option<Tls>, ExitError> {
    tls::install_crypto_provider();
    let certificate_and_key = match mode {
        TlsMode::Off => return Ok(None),
        TlsMode::Files(paths) => paths,
        TlsMode::SelfSigned => {
            let hostname = gethostname::gethostname();
            let names =
                self_signed::subject_names(args.host, self_signed::interface_addresses(), &hostname.to_string_lossy());
            self_signed::load_or_create(&data.join("tls"), &names, services.context.now()).map_err(ExitError::config)?
        }
    };
    Tls::open(certificate_and_key, &*services.context.clock).map(Some).map_err(ExitError::config)
}

/// Opens the database and the other parts of the services.
async fn open_parts(
    database_url: Option<&SecretString>,
    policy: &ServerPolicy,
    data: &Path,
) -> Result<ServiceParts, ExitError> {
    let (random, clock): (Arc<dyn Random>, Arc<dyn Clock>) = (Arc::new(OsRandom), Arc::new(SlewedClock::new()));
    let server = format!("c_{}", tokens::hex(&random.bytes::<8>()));
    let store =
        open_store(database_url, data, &server).await.map_err(|error| ExitError::config(format!("{error:#}")))?;
    let database = if database_url.is_some() { "postgres" } else { "sqlite" };
    let checkpoints =
        AuditCheckpointFile::open(data, database, random.bytes()).map_err(|error| unusable(data, &error))?;
    Ok(ServiceParts {
        token_signing_key: access::load_token_signing_key(&*store, &*random)
            .await
            .map_err(ExitError::from_service_error)?,
        store,
        clock,
        random,
        policy: *policy,
        server,
        vault: Vault::new(secret_key_path(data)),
        disk_space: DiskSpaceGuard::new(Arc::new(PathDisk(data.to_owned())), DiskFloor::Bytes(0), DiskFloor::Bytes(0)),
        blocklist: Blocklist::default(),
        checkpoints,
    })
}

fn open_services(parts: ServiceParts, data: &Path) -> Result<Services, ExitError> {
    Services::open(parts, data).map_err(|error| unusable(data, &error))
}

fn unusable(data: &Path, error: &dyn std::fmt::Display) -> ExitError {
    ExitError::config(format!("cannot use the data directory {}: {error}", data.display()))
}

/// Returns the path of the encryption key for secrets: beside the data directory, with the same name.
pub fn secret_key_path(data: &Path) -> PathBuf {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    data.with_file_name(format!("{name}.key"))
}

async fn open_store(database_url: Option<&SecretString>, data: &Path, server: &str) -> anyhow::Result<Arc<dyn Store>> {
    Ok(match database_url {
        None => Arc::new(SqliteStore::open(data, server).await?),
        Some(url) => Arc::new(PostgresStore::open(&url.0, server).await?),
    })
}

pub fn check_single_user(args: &ServerArgs) -> Result<(), ExitError> {
    if !args.single_user || args.host.is_loopback() {
        return Ok(());
    }
    Err(ExitError::usage(format!(
        "--single-user has no accounts and is not allowed on {}; use --host 127.0.0.1, or omit --single-user",
        args.host
    )))
}

/// Reads the admin token for automation, if one is given.
pub fn read_bootstrap_token(args: &ServerArgs) -> Result<Option<String>, ExitError> {
    let from_file = |path: &PathBuf| {
        let text = std::fs::read_to_string(path);
        text.map_err(|error| ExitError::config(format!("cannot read the admin token file {}: {error}", path.display())))
    };
    let from_file = args.bootstrap_admin_token_file.as_ref().map(from_file).transpose()?;
    let token = args.bootstrap_admin_token.as_ref().map(|secret| secret.0.clone()).or(from_file);
    if token.as_ref().is_some_and(|token| token.trim().len() < 16) {
        return Err(ExitError::config("the bootstrap admin token is too short; use at least 16 characters".to_owned()));
    }
    Ok(token)
}

/// Makes sure that an admin can sign in: returns a setup code if there is no user yet.
async fn prepare_first_sign_in(args: &ServerArgs, services: &Arc<Services>) -> Result<Option<String>, ExitError> {
    if let Some(token) = read_bootstrap_token(args)? {
        services.access.apply_bootstrap_token(&token).await.map_err(ExitError::from_service_error)?;
    }
    if args.single_user {
        tracing::info!("single-user mode: everyone on the loopback address is admin");
        return Ok(None);
    }
    services.access.issue_setup_code().await.map_err(ExitError::from_service_error)
}

async fn bind(args: &ServerArgs) -> Result<TcpListener, ExitError> {
    bind_to(SocketAddr::new(args.host, args.port), "--port").await
}

/// Binds the address of this flag.
pub async fn bind_to(address: SocketAddr, flag: &str) -> Result<TcpListener, ExitError> {
    let (host, port) = (address.ip(), address.port());
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => ExitError::unavailable(format!(
            "port {port} on {host} is in use; stop what uses it, or choose another with {flag}"
        )),
        std::io::ErrorKind::PermissionDenied => {
            ExitError::unavailable(format!("port {port} requires root; choose one above 1023 with {flag}"))
        }
        _ => {
            ExitError::unavailable(format!("cannot listen on {address} ({error}); choose another address with {flag}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_log_filter_counts_as_unset() {
        let filter = |chosen: Option<&str>| log_filter(chosen, "info,sqlx=warn").to_string();
        assert!(filter(None).contains("sqlx=warn"), "{}", filter(None));
        assert_eq!(filter(Some("")), filter(None));
        assert_eq!(filter(Some("debug")), "debug");
    }
}
