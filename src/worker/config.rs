//! The agent's settings, checked: whatever is wrong is said here, before anything starts.

pub mod disk;
mod labels;
mod ops;
pub mod paths;
pub mod span;

use std::path::{Path, PathBuf};
use std::time::Duration;

use app::domain::labels::Labels;
use app::domain::sandbox::SandboxLevel;
use app::domain::watermark::Floor;
use app::remote::Trust;
use clap::ArgMatches;
use reqwest::Url;

pub use self::ops::Ops;
use crate::cli::bounds::Bounds;
use crate::cli::jobs::MaxJobs;
use crate::cli::{AgentArgs, OnStop, is_on_command_line};
use crate::exit::Fatal;
use crate::files::Limits;
use crate::limits::Wanted;
use crate::room::space;
use crate::secret::{Secret, own};

/// What the agent was told, in usable form.
#[derive(Debug, Clone)]
pub struct Config {
    /// The orchestrator; its path ends with `/`.
    pub url: Url,
    /// The worker's token.
    pub token: Secret,
    /// The name to propose.
    pub name: String,
    /// Whether somebody gave that name.
    pub named: bool,
    /// This host's name.
    pub host: String,
    /// Whether to stay between jobs.
    pub persistent: bool,
    /// Labels to report.
    pub labels: Labels,
    /// Whose certificate is accepted.
    pub trust: Trust,
    /// Where jobs and their state live; absolute.
    pub work_dir: PathBuf,
    /// The trainer's command, program first.
    pub trainer: Vec<String>,
    /// What to report of the hardware instead of what is found.
    pub gpu: GpuOverrides,
    /// More variables for trainers.
    pub pass_env: Vec<String>,
    /// What happens to running jobs on a signal.
    pub on_stop: OnStop,
    /// Between asking a trainer to stop and killing it.
    pub stop_grace: Duration,
    /// What a job's output may take of the disk, in bytes.
    pub spool_limit: u64,
    /// What a job may take of the host's memory and processes.
    pub job_limits: Wanted,
    /// What a job may take of the work directory's disk.
    pub job_disk: Option<Floor>,
    /// What stays free of the work directory's disk.
    pub keep_free: disk::KeepFree,
    /// How long homes stay that nobody uses.
    pub keep_homes: Duration,
    /// How long an idle ephemeral worker looks for its orchestrator.
    pub give_up_after: Duration,
    /// How long a stream may be silent.
    pub stream_patience: Duration,
    /// How long polls replace a stream that brought nothing, before it gets another chance.
    pub poll_for: Duration,
    /// How many jobs to run at once.
    pub max_jobs: MaxJobs,
    /// What names in configurations stand for here.
    pub paths: paths::Paths,
    /// Whether configurations may bring code.
    pub allow_code: bool,
    /// How closely jobs are confined at least; none: as closely as the host can.
    pub sandbox_min: Option<SandboxLevel>,
    /// How much is read of what others send.
    pub bounds: Bounds,
    /// When the host ends by itself.
    pub ops: Ops,
}

/// The worker's own variables.
const VARIABLES: [&str; 4] = [
    "SIMPLETUNER_WORKER_TOKEN",
    "SIMPLETUNER_WORKER_TOKEN_FILE",
    "SIMPLETUNER_WORKER_NAME",
    "SIMPLETUNER_WORKER_PERSISTENT",
];

/// Hardware as a person describes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuOverrides {
    /// How many.
    pub count: Option<u32>,
    /// Their model.
    pub name: Option<String>,
    /// Memory of each, in GB.
    pub vram_gb: Option<f64>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: Option<String>,
}

impl Config {
    /// Checks the arguments.
    ///
    /// # Errors
    /// With the exit code and sentence for the person who wrote them.
    pub fn new(args: AgentArgs, matches: &ArgMatches) -> Result<Self, Fatal> {
        let url = url(&args)?;
        let token = token(&args, matches)?;
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        let work_dir = work_dir(&args)?;
        let default_stop = if args.persistent { OnStop::Leave } else { OnStop::Requeue };
        let config = Self {
            url,
            token,
            named: args.name.is_some(),
            name: args.name.unwrap_or_else(|| host.clone()),
            host,
            persistent: args.persistent,
            labels: labels::parse(&args.labels).map_err(Fatal::usage)?,
            trust: Trust::of(args.ssl_no_verify, args.ca_file, args.orchestrator_fingerprint.as_deref())?,
            work_dir,
            trainer: parse_trainer(&args.trainer)?,
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
            job_limits: args.limits.wanted(),
            job_disk: args.limits.disk.0,
            keep_free: disk::KeepFree::of(args.disk.keep_free),
            keep_homes: Duration::from_hours(24 * args.disk.home_retention_days),
            give_up_after: Duration::from_secs(args.give_up_after),
            stream_patience: Duration::from_secs(args.stream_patience),
            poll_for: Duration::from_secs(args.poll_for),
            max_jobs: args.jobs.max_jobs,
            paths: paths::parse(
                std::env::var("SIMPLETUNER_PATHS").ok().as_deref(),
                &args.jobs.paths,
                args.jobs.data_root.as_deref(),
            )
            .map_err(Fatal::usage)?,
            allow_code: args.jobs.allow_code,
            sandbox_min: args.jobs.sandbox_min.0,
            bounds: args.bounds,
            ops: Ops::of(&args.ops).map_err(Fatal::usage)?,
        };
        paths::check(&config.paths, &config.work_dir).map_err(Fatal::usage)?;
        config.warn_of_risks();
        Ok(config)
    }

    /// What each attempt is held to.
    pub fn limits(&self) -> Limits {
        Limits {
            spool_bytes: self.spool_limit,
            stop_grace_seconds: self.stop_grace.as_secs(),
            webhook: self.bounds.webhook,
        }
    }

    /// What a job may take of the work directory's disk, in bytes.
    pub fn job_disk_bytes(&self) -> Option<u64> {
        match self.job_disk? {
            Floor::Bytes(bytes) => Some(bytes),
            // Of a disk that says nothing of its size there is no part.
            part @ Floor::Percent(_) => Some(part.of(space(&self.work_dir)?.total)),
        }
    }

    fn warn_of_risks(&self) {
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("SIMPLETUNER_WORKER_") && !VARIABLES.contains(&name.as_ref()) {
                tracing::warn!("the variable {name} is not known and changes nothing; is it misspelt?");
            }
            if name == "SIMPLETUNER_HEARTBEAT_TIMEOUT" {
                tracing::warn!("{name} changes nothing here: set it on the orchestrator, which tells its workers");
            }
        }
        for (name, dir) in self.paths.iter().filter(|(_, dir)| !dir.path.is_dir()) {
            tracing::warn!("{{{name}}} stands for {}, which is no directory now", dir.path.display());
        }
        if self.trust == Trust::Anything {
            tracing::warn!(
                "--ssl-no-verify: anyone on the network path can pose as the orchestrator and run code here. \
                 Use --orchestrator-fingerprint, as its dashboard shows it, or --ca-file instead"
            );
        }
        if matches!(self.trust, Trust::Pinned(_) | Trust::Only(_)) && self.url.scheme() == "http" {
            tracing::warn!("nothing is verified over http://; write https:// in --orchestrator-url");
        }
        if self.url.scheme() == "http" && !is_local(&self.url) {
            tracing::warn!("the token travels unencrypted to {}; use https where the network is not trusted", self.url);
        }
    }
}

/// Whether the orchestrator is on this machine.
pub fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// The orchestrator.
///
/// # Errors
/// If none is named, or what is named is no address.
pub fn url(args: &AgentArgs) -> Result<Url, Fatal> {
    let url = args.orchestrator_url.as_deref().ok_or_else(|| {
        Fatal::usage("which orchestrator? Give --orchestrator-url URL or set SIMPLETUNER_ORCHESTRATOR_URL")
    })?;
    parse_url(url)
}

/// The worker's token; the more explicit of two wins.
///
/// # Errors
/// If there is none, or none that can be sent.
pub fn token(args: &AgentArgs, matches: &ArgMatches) -> Result<Secret, Fatal> {
    let file_first = is_on_command_line(matches, "worker_token_file") && !is_on_command_line(matches, "worker_token");
    let token = read_token(args.worker_token.as_deref(), args.worker_token_file.as_deref(), file_first)?;
    own::hide(&token);
    Ok(token)
}

/// Where jobs and their state live; absolute.
///
/// # Errors
/// If nobody says where.
pub fn work_dir(args: &AgentArgs) -> Result<PathBuf, Fatal> {
    match &args.work_dir {
        Some(dir) => std::path::absolute(dir)
            .map_err(|error| Fatal::config(format!("--work-dir {} is no usable path: {error}", dir.display()))),
        None => default_work_dir(|name| std::env::var(name).ok()),
    }
}

fn parse_url(text: &str) -> Result<Url, Fatal> {
    let wrong = |why: &str| Fatal::usage(format!("--orchestrator-url {text:?} {why}"));
    let mut url =
        Url::parse(text.trim()).map_err(|_| wrong("is no URL: it looks like https://orchestrator.example.com:8001"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("must start with http:// or https:// and a host name"));
    }
    url.set_query(None);
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn read_token(given: Option<&str>, file: Option<&Path>, file_first: bool) -> Result<Secret, Fatal> {
    let from_file = |path: &Path| {
        std::fs::read_to_string(path)
            .map(|text| Secret::new(&text))
            .map_err(|error| Fatal::config(format!("cannot read the worker token from {}: {error}", path.display())))
    };
    let token = match (given, file) {
        (Some(_), Some(path)) if file_first => from_file(path)?,
        (Some(text), _) => Secret::new(text),
        (None, Some(path)) => from_file(path)?,
        (None, None) => Secret::default(),
    };
    let text = token.reveal();
    if text.is_empty() {
        return Err(Fatal::usage(
            "no worker token: create a worker in the orchestrator (Administration → Workers) and give its token in \
             SIMPLETUNER_WORKER_TOKEN or with --worker-token-file FILE",
        ));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Fatal::config(
            "the worker token has white space or odd characters in it: copy it again, in one line",
        ));
    }
    Ok(token)
}

/// The trainer's command, program first.
///
/// # Errors
/// If it is none.
pub fn parse_trainer(command: &str) -> Result<Vec<String>, Fatal> {
    let words = shell_words::split(command)
        .map_err(|error| Fatal::usage(format!("--trainer {command:?} cannot be split into words: {error}")))?;
    if words.is_empty() {
        return Err(Fatal::usage("--trainer is empty: name the command that trains, or leave the flag out"));
    }
    Ok(words)
}

/// By the XDG base directory specification.
pub fn default_work_dir(variable: impl Fn(&str) -> Option<String>) -> Result<PathBuf, Fatal> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("simpletuner/worker"))
        .ok_or_else(|| Fatal::config("no place for the worker's state: set --work-dir DIR (HOME is not set)"))
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
    fn a_missing_token_is_usage_and_a_broken_one_is_configuration() {
        let code =
            |given: Option<&str>, file: Option<&Path>| read_token(given, file, false).map_err(|fatal| fatal.code);
        assert_eq!(code(None, None), Err(2));
        assert_eq!(code(Some(" "), None), Err(2));
        assert_eq!(code(Some("wt a"), None), Err(78));
        assert_eq!(code(None, Some(Path::new("/does/not/exist"))), Err(78));
        assert_eq!(code(Some("wt_a\n"), None), Ok(Secret::new("wt_a")));
    }

    #[test]
    fn trainer_and_state_directory() {
        assert_eq!(parse_trainer("a 'b c'").ok(), Some(vec!["a".to_owned(), "b c".to_owned()]));
        assert!(parse_trainer("a 'b").is_err() && parse_trainer("  ").is_err());
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(default_work_dir(home).ok(), Some(PathBuf::from("/h/.local/state/simpletuner/worker")));
        assert!(default_work_dir(|_| None).is_err_and(|fatal| fatal.code == 78));
    }
}
