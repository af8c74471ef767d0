//! The sandbox levels that this host supports: tested once when the agent starts, by sandboxing a command.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use app::domain::sandbox::{Sandbox, SandboxLevel};
use nix::unistd::{SysconfVar, geteuid};

use super::namespace_diagnosis::NamespaceDiagnosis;
use super::plan::{FILE, SandboxJob, SandboxPlan, SandboxUser};
use super::proc_files::kernel_is_protected;
use super::report::{SandboxReport, SandboxReportReader};
use super::{landlock, system_paths, trainer_files, users};
use crate::worker::config::AgentConfig;
use crate::worker::config::paths::{HostDirectories, writable_ancestor};
use crate::worker::environment::{own_variables, passed_variables};
use crate::worker::files::AttemptDir;
use crate::worker::trainer_program::{check_command, is_python, succeeds};

/// Directory of the test, below the work directory.
const TRIAL_DIR: &str = "sandbox-trial";
/// Python can be slow to start from a slow disk.
const TRIAL_TIMEOUT: Duration = Duration::from_mins(1);
/// Max processes and threads of a job. Data loaders and compilers start hundreds.
const MAX_PROCESSES: u64 = 16_384;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSupport {
    /// Minimum level of every job.
    pub min_level: SandboxLevel,
    /// Maximum level that a job can request.
    pub max_level: SandboxLevel,
    /// Why the maximum is not `full`.
    pub limit_reason: Option<String>,
    /// Whether each user's trainers run as a separate operating system user.
    pub isolates_users: bool,
    /// The same at level `files`, where that user must be able to reach the work directory on the host.
    pub isolates_users_at_files: bool,
    /// What the trainer's program needs to read.
    pub program_files: Vec<PathBuf>,
}

impl SandboxSupport {
    /// Tries the levels from the highest down, with the trainer's own program, in a directory below `scratch`. Takes a
    /// fraction of a second.
    pub fn detect(config: &AgentConfig, scratch: &Path) -> Self {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let program_files = program_files(&config.trainer, &search, &config.work_dir);
        let host = Self {
            min_level: SandboxLevel::None,
            max_level: SandboxLevel::None,
            limit_reason: None,
            isolates_users: false,
            isolates_users_at_files: false,
            program_files,
        };
        let host = match exposed_program_reason(&host.program_files, &config.exposed_directories()) {
            Some(reason) => Self { limit_reason: Some(reason), ..host },
            None => host.detect_max_level(config, scratch),
        };
        let mut host = host.with_min_level(config.sandbox_min);
        host.isolates_users_at_files = host.isolates_users
            && match (host.max_level, host.min_level) {
                // No job runs at that level.
                (SandboxLevel::Full, SandboxLevel::Full) => false,
                (SandboxLevel::Full, _) => host.try_level(config, scratch, SandboxLevel::Files, true).is_ok(),
                (SandboxLevel::Files | SandboxLevel::None, _) => true,
            };
        host
    }

    fn detect_max_level(mut self, config: &AgentConfig, scratch: &Path) -> Self {
        let is_root = geteuid().is_root();
        let mut failure = None;
        for level in [SandboxLevel::Full, SandboxLevel::Files] {
            // Separate users matter most in a sandbox that root creates; but only root can read some trainers.
            for has_users in [true, false].into_iter().filter(|separate| is_root || !separate) {
                match self.try_level(config, scratch, level, has_users) {
                    Ok(()) => {
                        (self.max_level, self.isolates_users, self.limit_reason) =
                            (level, has_users, failure.or_else(missing_scopes_reason));
                        return self;
                    }
                    // The reason why a level is not available at all is more important than why it has no separate
                    // users.
                    Err(reason) => failure = failure.filter(|_| level < SandboxLevel::Full).or(Some(reason)),
                }
            }
        }
        self.limit_reason = failure;
        self
    }

    /// Without a setting, every job gets the maximum.
    fn with_min_level(mut self, requested: Option<SandboxLevel>) -> Self {
        self.min_level = requested.unwrap_or(self.max_level);
        self
    }

    pub fn to_report(&self) -> Sandbox {
        Sandbox { least: self.min_level, most: self.max_level, why_not_more: self.limit_reason.clone(), limits: None }
    }

    /// Why CUDA does not start in jobs here, where the sandbox is the cause.
    pub fn cuda_block_reason(&self) -> Option<&'static str> {
        let run_as_root = geteuid().is_root() && self.min_level == SandboxLevel::Files && !self.isolates_users_at_files;
        (run_as_root && !kernel_is_protected(Path::new("/proc"))).then_some(
            "jobs at level files run as root here, may not write to /proc, and CUDA does not start without that",
        )
    }

    /// Why no jobs are accepted: the required level is not available.
    pub fn unhealthy_reason(&self) -> Option<String> {
        let reason = self.limit_reason.as_deref().unwrap_or("not tested");
        (self.min_level > self.max_level).then(|| {
            format!(
                "this host does not support sandbox level {}, which --sandbox-min requires, only {}: {reason}",
                self.min_level.as_str(),
                self.max_level.as_str()
            )
        })
    }

    /// Runs the check of the trainer's command in a sandbox.
    fn try_level(
        &self,
        config: &AgentConfig,
        scratch: &Path,
        level: SandboxLevel,
        has_users: bool,
    ) -> Result<(), String> {
        let dir = AttemptDir::from_path(&scratch.join(TRIAL_DIR));
        let result = self.try_level_in(&dir, config, level, has_users);
        // Replaces what a killed agent has left.
        let _ = fs::remove_dir_all(dir.path());
        result
    }

    fn try_level_in(
        &self,
        dir: &AttemptDir,
        config: &AgentConfig,
        level: SandboxLevel,
        has_users: bool,
    ) -> Result<(), String> {
        let describe = |error: io::Error| error.to_string();
        let _ = fs::remove_dir_all(dir.path());
        fs::create_dir_all(dir.path()).map_err(describe)?;
        let is_python = config.trainer.first().is_some_and(|program| is_python(Path::new(program)));
        let check = Some(check_command(&config.trainer)).filter(|check| is_python && succeeds(check));
        // A missing trainer is another error, which the doctor reports.
        let command = check.unwrap_or_else(|| ["sh", "-c", ":"].map(str::to_owned).to_vec());
        let grant = SandboxGrant {
            level,
            dir: dir.clone(),
            home: users::home_dir(dir.path(), TRIAL_DIR),
            owner: TRIAL_DIR.to_owned(),
            read_paths: Vec::new(),
            write_paths: Vec::new(),
            cwd: None,
            devices: Vec::new(),
            jobs: 1,
        };
        let plan = Self { isolates_users: has_users, isolates_users_at_files: has_users, ..self.clone() }
            .prepare(&grant)
            .map_err(describe)?;
        dir.write_json(FILE, &SandboxJob { command, plan }).map_err(describe)?;
        let log = fs::File::create(dir.log_path()).map_err(describe)?;
        let environment = passed_variables(own_variables(), &config.pass_env);
        let (mut child, mut reports) = super::spawn(dir, &environment, log).map_err(describe)?;
        let started = reports.wait_until_running();
        let with_cause =
            |why| match NamespaceDiagnosis::collect().likely_cause().filter(|_| level == SandboxLevel::Full) {
                Some(cause) => format!("{why} ({cause})"),
                None => why,
            };
        let init = started.map_err(|failure| with_cause(failure.why))?;
        let child_code = child.wait().map_err(describe)?.code();
        let code = if init.is_some() { wait_for_exit(&mut reports).map_err(describe)? } else { child_code };
        if code == Some(0) {
            return Ok(());
        }
        let output = fs::read_to_string(dir.log_path()).unwrap_or_default();
        Err(format!(
            "the trainer's program does not start in the sandbox ({})",
            output.lines().last().unwrap_or("no output").trim()
        ))
    }

    /// Creates an attempt's own directories, and decides what it may access.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn prepare(&self, grant: &SandboxGrant) -> io::Result<SandboxPlan> {
        let dir = &grant.dir;
        let work = grant.cwd.clone().unwrap_or_else(|| dir.working_dir());
        fs::create_dir_all(dir.control_dir())?;
        // The trainer's user looks for the stop file in it, whatever the agent's umask.
        fs::set_permissions(dir.control_dir(), fs::Permissions::from_mode(0o755))?;
        if grant.level == SandboxLevel::None {
            fs::create_dir_all(dir.working_dir())?;
            return Ok(SandboxPlan { work, ..SandboxPlan::default() });
        }
        let work_dir = grant.home.parent().and_then(Path::parent).unwrap_or(&grant.home);
        let has_user =
            if grant.level == SandboxLevel::Full { self.isolates_users } else { self.isolates_users_at_files };
        let user = if has_user { Some(users::allocate_user(work_dir, &grant.owner)?) } else { None };
        for path in [&dir.working_dir(), &dir.tmp_dir()] {
            create_owned_dir(path, user)?;
        }
        users::with_homes_lock(|| users::touch_home(&grant.home).and_then(|()| create_owned_dir(&grant.home, user)))?;
        chown_recursive(&dir.output_dir(), user)?;
        chown_recursive(&dir.bundle_dir(), user)?;
        if user.is_some() && grant.level < SandboxLevel::Full {
            // The trainer's user must reach its own files; private files beside them are protected by their own mode.
            for ancestor in dir.path().ancestors().take_while(|ancestor| ancestor.starts_with(work_dir)) {
                fs::set_permissions(ancestor, fs::Permissions::from_mode(0o711))?;
            }
            fs::set_permissions(users::owners_dir(work_dir), fs::Permissions::from_mode(0o711))?;
        }
        let own_reads = [dir.bundle_dir(), dir.control_dir()];
        let own_writes = [dir.output_dir(), dir.working_dir(), grant.home.clone()];
        Ok(SandboxPlan {
            level: grant.level,
            user,
            read: [
                system_paths::existing_paths(),
                self.program_files.clone(),
                grant.read_paths.clone(),
                own_reads.into(),
            ]
            .concat(),
            write: [grant.write_paths.clone(), own_writes.into()].concat(),
            devices: grant.devices.clone(),
            tmp: dir.tmp_dir(),
            work,
            shared_memory_bytes: shared_memory_bytes() / u64::from(grant.jobs.max(1)),
            max_processes: Some(MAX_PROCESSES),
        })
    }
}

/// What an attempt may access.
#[derive(Debug, Clone)]
pub struct SandboxGrant {
    pub level: SandboxLevel,
    pub dir: AttemptDir,
    /// Home directory of the job's user.
    pub home: PathBuf,
    pub owner: String,
    /// Directories that the owner lets jobs read.
    pub read_paths: Vec<PathBuf>,
    /// Directories that the owner lets jobs write to.
    pub write_paths: Vec<PathBuf>,
    /// Where it starts, if not in its own directory.
    pub cwd: Option<PathBuf>,
    /// The device files of its GPUs.
    pub devices: Vec<PathBuf>,
    /// How many jobs share the host.
    pub jobs: u32,
}

/// Half of the memory, like the kernel's default for `/dev/shm`.
fn shared_memory_bytes() -> u64 {
    let pages = |name| nix::unistd::sysconf(name).ok().flatten().and_then(|value| u64::try_from(value).ok());
    let (count, size) = (pages(SysconfVar::_PHYS_PAGES), pages(SysconfVar::PAGE_SIZE));
    count.zip(size).map_or(1 << 30, |(count, size)| count * size / 2)
}

/// Creates a directory that only the trainer's user can access.
fn create_owned_dir(path: &Path, user: Option<SandboxUser>) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    match user {
        Some(user) => lchown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

/// Creates a directory if it is missing, and gives its content to the trainer's user. Links are not followed. A file
/// with several hard links keeps its owner: an earlier attempt may have linked another user's file.
fn chown_recursive(path: &Path, user: Option<SandboxUser>) -> io::Result<()> {
    create_owned_dir(path, user)?;
    let Some(owner) = user else { return Ok(()) };
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            chown_recursive(&entry.path(), user)?;
        } else if entry.metadata()?.nlink() == 1 {
            lchown(entry.path(), Some(owner.uid), Some(owner.gid))?;
        }
    }
    Ok(())
}

/// What a job at any level can do to others on an older kernel.
fn missing_scopes_reason() -> Option<String> {
    let reason = "this kernel does not isolate abstract sockets, nor, at level files, signals of processes of one user \
        (Linux 6.12 with Landlock does)";
    (!landlock::has_scopes()).then(|| reason.to_owned())
}

/// Why no job can be sandboxed: a job could replace the trainer's own files by a link.
fn exposed_program_reason(program_files: &[PathBuf], paths: &HostDirectories) -> Option<String> {
    let file = program_files.iter().find(|file| writable_ancestor(paths, file).is_some())?;
    let (name, dir) = writable_ancestor(paths, file)?;
    Some(format!(
        "the trainer needs {}, inside {{{name}}}, {}, which jobs may change (:rw): move one of them, or remove :rw \
        there",
        file.display(),
        dir.display()
    ))
}

fn wait_for_exit(reports: &mut SandboxReportReader) -> io::Result<Option<i32>> {
    loop {
        match reports.next(TRIAL_TIMEOUT)? {
            Some(SandboxReport::Ended { code, .. }) => return Ok(code),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

fn installation_root(path: &Path) -> Option<&Path> {
    let is_programs = path.file_name().is_some_and(|name| name == "bin" || name == "shims");
    path.parent().filter(|_| is_programs)
}

/// Excludes paths that would expose the agent's own state, or a whole home directory.
fn program_files(command: &[String], search: &OsStr, work_dir: &Path) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let is_too_much = |path: &Path| {
        let contains_path = |inner: &Path| inner.starts_with(path);
        path == Path::new("/") || contains_path(work_dir) || home.as_deref().is_some_and(contains_path)
    };
    let required = trainer_files::required_paths(command, search);
    // Programs in `bin` or `shims` of an installation, such as a virtual environment or pyenv, need the rest of it.
    let installations = required.iter().filter_map(|path| installation_root(path)).filter(|path| !is_too_much(path));
    let required: BTreeSet<PathBuf> = installations.map(Path::to_owned).chain(required.iter().cloned()).collect();
    let (too_large, files): (Vec<_>, Vec<_>) = required.into_iter().partition(|path| is_too_much(path));
    for path in too_large {
        tracing::warn!(
            path = %path.display(),
            "the trainer's files are in a directory that jobs cannot get as a whole; move them, or name them with \
            --path"
        );
    }
    files
}
