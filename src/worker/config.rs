//! The agent's validated settings: all errors are reported here, before anything starts.

pub mod disk;
mod labels;
mod notice_source;
mod ops;
pub mod paths;

use std::path::{Path, PathBuf};
use std::time::Duration;

use app::domain::disk_watermark::DiskFloor;
use app::domain::labels::Labels;
use app::domain::sandbox::SandboxLevel;
use app::remote::ServerTrust;
use clap::ArgMatches;
use reqwest::Url;

pub use self::notice_source::NoticeSource;
pub use self::ops::ShutdownConfig;
use crate::worker::args::input_limits::InputLimits;
use crate::worker::args::jobs::MaxJobs;
use crate::worker::args::limits::RequestedLimits;
use crate::worker::args::{AgentArgs, OnStop, is_on_command_line};
use crate::worker::exit::FatalError;
use crate::worker::files::AttemptLimits;
use crate::worker::filesystem::read_disk_space;
use crate::worker::secret::{Secret, agent_secrets};

#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The orchestrator; its path ends with `/`.
    pub url: Url,
    pub token: Secret,
    /// The name to report.
    pub name: String,
    /// Whether the name was set explicitly.
    pub has_explicit_name: bool,
    pub hostname: String,
    /// Whether to stay online between jobs.
    pub persistent: bool,
    pub labels: Labels,
    /// Which certificates are accepted.
    pub trust: ServerTrust,
    /// Directory of jobs and their state; absolute.
    pub work_dir: PathBuf,
    /// The trainer's command, program first.
    pub trainer: Vec<String>,
    /// Where trainers start; `None`: each in its own empty directory.
    pub trainer_cwd: Option<paths::HostDirectory>,
    /// Hardware to report instead of what is detected.
    pub gpu: GpuOverrides,
    /// Additional variables for trainers.
    pub pass_env: Vec<String>,
    /// What happens to running jobs on a signal.
    pub on_stop: OnStop,
    /// Time between asking a trainer to stop and killing it.
    pub stop_grace: Duration,
    /// Max undelivered output of a job on disk, in bytes.
    pub spool_limit: u64,
    /// Max memory and processes of a job.
    pub job_limits: RequestedLimits,
    /// Max usage of the work directory's disk by a job.
    pub job_disk: Option<DiskFloor>,
    /// Free space to keep on the work directory's disk.
    pub min_free_space: disk::MinFreeSpace,
    /// How long unused home directories are kept.
    pub home_retention: Duration,
    /// How long an idle ephemeral worker tries to reach its orchestrator.
    pub give_up_after: Duration,
    /// How long a stream may be silent.
    pub stream_timeout: Duration,
    /// How long polls replace a silent stream before it is tried again.
    pub polling_period: Duration,
    pub max_jobs: MaxJobs,
    /// Directories by placeholder name.
    pub host_directories: paths::HostDirectories,
    /// Whether configurations may contain code.
    pub allow_code: bool,
    /// Minimum sandbox level; `None`: the highest that the host supports.
    pub sandbox_min: Option<SandboxLevel>,
    pub input_limits: InputLimits,
    /// When the agent exits by itself.
    pub shutdown: ShutdownConfig,
}

/// The worker's own variables.
const WORKER_ENV_VARIABLES: [&str; 5] = [
    "SIMPLETUNER_WORKER_TOKEN",
    "SIMPLETUNER_WORKER_TOKEN_FILE",
    "SIMPLETUNER_WORKER_NAME",
    "SIMPLETUNER_WORKER_PERSISTENT",
    "SIMPLETUNER_WORKER_TRAINER_CWD",
];

/// Hardware as configured by the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuOverrides {
    pub count: Option<u32>,
    pub name: Option<String>,
    /// Memory of each, in GB.
    pub vram_gb: Option<f64>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: Option<String>,
}

impl AgentConfig {
    /// Validates the arguments.
    ///
    /// # Errors
    /// Exit code and message for the user.
    pub fn from_args(args: AgentArgs, matches: &ArgMatches) -> Result<Self, FatalError> {
        let url = orchestrator_url(&args)?;
        let token = worker_token(&args, matches)?;
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        let work_dir = work_dir(&args)?;
        let default_stop = if args.persistent { OnStop::Leave } else { OnStop::Requeue };
        let config = Self {
            url,
            token,
            has_explicit_name: args.name.is_some(),
            name: args.name.unwrap_or_else(|| host.clone()),
            hostname: host,
            persistent: args.persistent,
            labels: labels::parse(&args.labels).map_err(FatalError::usage)?,
            trust: ServerTrust::from_flags(args.ssl_no_verify, args.ca_file, args.orchestrator_fingerprint.as_deref())?,
            work_dir,
            trainer: parse_trainer(&args.trainer)?,
            trainer_cwd: args
                .jobs
                .trainer_cwd
                .as_deref()
                .map(paths::trainer_cwd)
                .transpose()
                .map_err(FatalError::config)?,
            gpu: GpuOverrides {
                count: args.gpu_count,
                name: args.gpu_name,
                vram_gb: args.gpu_vram_gb,
                accelerator: args.accelerator,
            },
            pass_env: args.pass_env,
            on_stop: args.on_stop.unwrap_or(default_stop),
            stop_grace: Duration::from_secs(args.stop_grace),
            spool_limit: args.spool.spool_limit,
            job_limits: args.limits.requested_limits(),
            job_disk: args.limits.disk.0,
            min_free_space: disk::MinFreeSpace::from_flag(args.disk.keep_free),
            home_retention: Duration::from_hours(24 * args.disk.home_retention_days),
            give_up_after: Duration::from_secs(args.give_up_after),
            stream_timeout: Duration::from_secs(args.stream_patience),
            polling_period: Duration::from_secs(args.poll_for),
            max_jobs: args.jobs.max_jobs,
            host_directories: paths::parse(
                std::env::var("SIMPLETUNER_PATHS").ok().as_deref(),
                &args.jobs.paths,
                args.jobs.data_root.as_deref(),
            )
            .map_err(FatalError::usage)?,
            allow_code: args.jobs.allow_code,
            sandbox_min: args.jobs.sandbox_min.0,
            input_limits: args.input_limits,
            shutdown: ShutdownConfig::from_args(&args.ops).map_err(FatalError::usage)?,
        };
        paths::check_nesting(&config.exposed_directories(), &config.work_dir).map_err(FatalError::usage)?;
        config.warn_of_risks();
        Ok(config)
    }

    /// Every directory that jobs get, by its placeholder name or the flag that sets it.
    pub fn exposed_directories(&self) -> paths::HostDirectories {
        let cwd = self.trainer_cwd.clone().map(|dir| ("--trainer-cwd".to_owned(), dir));
        self.host_directories.clone().into_iter().chain(cwd).collect()
    }

    /// The limits of each attempt.
    pub fn attempt_limits(&self) -> AttemptLimits {
        AttemptLimits {
            spool_bytes: self.spool_limit,
            stop_grace_seconds: self.stop_grace.as_secs(),
            webhook: self.input_limits.webhook,
        }
    }

    /// Max usage of the work directory's disk by a job, in bytes.
    pub fn job_disk_bytes(&self) -> Option<u64> {
        match self.job_disk? {
            DiskFloor::Bytes(bytes) => Some(bytes),
            // If the size of the disk is unknown, a percentage means no limit.
            percentage @ DiskFloor::Percent(_) => Some(percentage.to_bytes(read_disk_space(&self.work_dir)?.total)),
        }
    }

    fn warn_of_risks(&self) {
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("SIMPLETUNER_WORKER_") && !WORKER_ENV_VARIABLES.contains(&name.as_ref()) {
                tracing::warn!("ignoring the unknown variable {name}; is it misspelled?");
            }
            if name == "SIMPLETUNER_HEARTBEAT_TIMEOUT" {
                tracing::warn!("{name} has no effect here: set it on the orchestrator, which sends it to its workers");
            }
        }
        for (name, dir) in self.host_directories.iter().filter(|(_, dir)| !dir.path.is_dir()) {
            tracing::warn!("{{{name}}} is {}, which is not a directory now", dir.path.display());
        }
        if self.trust == ServerTrust::AcceptAny {
            tracing::warn!(
                "--ssl-no-verify: anyone on the network path can pose as the orchestrator and run code here. \
                 Use --orchestrator-fingerprint, as its dashboard shows it, or --ca-file instead"
            );
        }
        if matches!(self.trust, ServerTrust::PinnedKey(_) | ServerTrust::CaFile(_)) && self.url.scheme() == "http" {
            tracing::warn!("nothing is verified over http://; use https:// in --orchestrator-url");
        }
        if self.url.scheme() == "http" && !is_local(&self.url) {
            tracing::warn!("the token is sent unencrypted to {}; use https if the network is not trusted", self.url);
        }
    }
}

/// Whether the orchestrator is on this machine.
pub fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// The orchestrator's URL.
///
/// # Errors
/// If it is missing or invalid.
pub fn orchestrator_url(args: &AgentArgs) -> Result<Url, FatalError> {
    let url = args.orchestrator_url.as_deref().ok_or_else(|| {
        FatalError::usage("no orchestrator: set its URL with --orchestrator-url or SIMPLETUNER_ORCHESTRATOR_URL")
    })?;
    parse_url(url)
}

/// The worker's token; the more explicit source wins.
///
/// # Errors
/// If it is missing or contains invalid characters.
pub fn worker_token(args: &AgentArgs, matches: &ArgMatches) -> Result<Secret, FatalError> {
    let file_first = is_on_command_line(matches, "worker_token_file") && !is_on_command_line(matches, "worker_token");
    let token = read_token(args.worker_token.as_deref(), args.worker_token_file.as_deref(), file_first)?;
    agent_secrets::add(&token);
    Ok(token)
}

/// Directory of jobs and their state; absolute.
///
/// # Errors
/// If it is not set and has no default.
pub fn work_dir(args: &AgentArgs) -> Result<PathBuf, FatalError> {
    match &args.work_dir {
        Some(dir) => std::path::absolute(dir)
            .map_err(|error| FatalError::config(format!("--work-dir {} is invalid: {error}", dir.display()))),
        None => default_work_dir(|name| std::env::var(name).ok()),
    }
}

fn parse_url(text: &str) -> Result<Url, FatalError> {
    let usage_error = |problem: &str| FatalError::usage(format!("--orchestrator-url {text:?} {problem}"));
    let mut url = Url::parse(text.trim())
        .map_err(|_| usage_error("is not a URL: it should look like https://orchestrator.example.com:8001"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(usage_error("must start with http:// or https:// and a host name"));
    }
    url.set_query(None);
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn read_token(token_argument: Option<&str>, file: Option<&Path>, file_first: bool) -> Result<Secret, FatalError> {
    let from_file = |path: &Path| {
        std::fs::read_to_string(path).map(|text| Secret::new(&text)).map_err(|error| {
            FatalError::config(format!("cannot read the worker token from {}: {error}", path.display()))
        })
    };
    let token = match (token_argument, file) {
        (Some(_), Some(path)) if file_first => from_file(path)?,
        (Some(text), _) => Secret::new(text),
        (None, Some(path)) => from_file(path)?,
        (None, None) => Secret::default(),
    };
    let text = token.reveal();
    if text.is_empty() {
        return Err(FatalError::usage(
            "no worker token: create a worker in the orchestrator (Administration → Workers) and set its token with \
            SIMPLETUNER_WORKER_TOKEN or --worker-token-file FILE",
        ));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(FatalError::config(
            "the worker token contains white space or invalid characters: copy it again, as one line",
        ));
    }
    Ok(token)
}

/// The trainer's command, program first.
///
/// # Errors
/// If it is invalid.
pub fn parse_trainer(command: &str) -> Result<Vec<String>, FatalError> {
    let words = shell_words::split(command)
        .map_err(|error| FatalError::usage(format!("cannot split --trainer {command:?} into words: {error}")))?;
    if words.is_empty() {
        return Err(FatalError::usage("--trainer is empty: set the trainer command, or omit the flag"));
    }
    Ok(words)
}

/// The default according to the XDG base directory specification.
pub fn default_work_dir(variable: impl Fn(&str) -> Option<String>) -> Result<PathBuf, FatalError> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("simpletuner/worker"))
        .ok_or_else(|| FatalError::config("no directory for the worker's state: set --work-dir DIR (HOME is not set)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_keep_their_path_prefix() {
        let cases = [
            ("http://h:8001", Some("http://h:8001/")),
            (" https://h/tuner ", Some("https://h/tuner/")),
            ("https://h/tuner/?x=1#y", Some("https://h/tuner/")),
            ("h:8001", None),
            ("ftp://h/", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_url(text).ok().map(|url| url.to_string()).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn missing_token_is_a_usage_error_and_invalid_one_a_configuration_error() {
        let code =
            |argument: Option<&str>, file: Option<&Path>| read_token(argument, file, false).map_err(|fatal| fatal.code);
        assert_eq!(code(None, None), Err(2));
        assert_eq!(code(Some(" "), None), Err(2));
        assert_eq!(code(Some("wt a"), None), Err(78));
        assert_eq!(code(None, Some(Path::new("/does/not/exist"))), Err(78));
        assert_eq!(code(Some("wt_a\n"), None), Ok(Secret::new("wt_a")));
    }

    #[test]
    fn trainer_and_state_directory_are_validated() {
        assert_eq!(parse_trainer("a 'b c'").ok(), Some(vec!["a".to_owned(), "b c".to_owned()]));
        assert!(parse_trainer("a 'b").is_err() && parse_trainer("  ").is_err());
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(default_work_dir(home).ok(), Some(PathBuf::from("/h/.local/state/simpletuner/worker")));
        assert!(default_work_dir(|_| None).is_err_and(|fatal| fatal.code == 78));
    }
}
