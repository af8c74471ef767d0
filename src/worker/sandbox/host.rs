//! What this host can do to confine a trainer: tried once when the agent starts, by confining one.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use app::domain::sandbox::{Sandbox, SandboxLevel};
use nix::unistd::{SysconfVar, geteuid};

use super::plan::{FILE, Job, Plan, User};
use super::refusal::Facts;
use super::report::{Report, Reports};
use super::trainer_files::is_python;
use super::{landlock, system, trainer_files, users};
use crate::config::Config;
use crate::config::paths::{Paths, changeable_above};
use crate::files::AttemptDir;
use crate::probe::{check, succeeds};

/// Where a sandbox is tried, below the work directory.
const TRIAL: &str = "sandbox-trial";
/// A Python that starts from a slow disk takes its time.
const PATIENCE: Duration = Duration::from_mins(1);
/// Processes and threads of one job. Data loaders and compilers start hundreds.
const MAX_PROCESSES: u64 = 16_384;

/// The host's sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// What every job gets at least.
    pub least: SandboxLevel,
    /// The most that a job can ask for.
    pub most: SandboxLevel,
    /// Why it is not more, if it is not all.
    pub why_not_more: Option<String>,
    /// Whether each person's trainers run as a user of their own.
    pub has_users: bool,
    /// The same at level `files`, where that user has to get to the work directory on the host's own way.
    pub has_users_at_files: bool,
    /// What the trainer's program needs to read.
    pub program_files: Vec<PathBuf>,
}

impl Host {
    /// Tries the levels from the highest down, with the trainer's own program, in a directory below `scratch`. Takes a fraction
    /// of a second.
    pub fn examine(config: &Config, scratch: &Path) -> Self {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let program_files = program_files(&config.trainer, &search, &config.work_dir);
        let host = Self {
            least: SandboxLevel::None,
            most: SandboxLevel::None,
            why_not_more: None,
            has_users: false,
            has_users_at_files: false,
            program_files,
        };
        let host = match exposed(&host.program_files, &config.paths) {
            Some(why) => Self { why_not_more: Some(why), ..host },
            None => host.find_most(config, scratch),
        };
        let mut host = host.with_least(config.sandbox_min);
        host.has_users_at_files = host.has_users
            && match (host.most, host.least) {
                // No job is confined at that level.
                (SandboxLevel::Full, SandboxLevel::Full) => false,
                (SandboxLevel::Full, _) => host.attempt(config, scratch, SandboxLevel::Files, true).is_ok(),
                (SandboxLevel::Files | SandboxLevel::None, _) => true,
            };
        host
    }

    fn find_most(mut self, config: &Config, scratch: &Path) -> Self {
        let as_root = geteuid().is_root();
        let mut failure = None;
        for level in [SandboxLevel::Full, SandboxLevel::Files] {
            // A user of its own is the better half of a sandbox that root makes; some trainers can be read by root alone.
            for has_users in [true, false].into_iter().filter(|own| as_root || !own) {
                match self.attempt(config, scratch, level, has_users) {
                    Ok(()) => {
                        (self.most, self.has_users, self.why_not_more) = (level, has_users, failure.or_else(unscoped));
                        return self;
                    }
                    // The reason that a level is out of reach at all outweighs why people have no users of their own at it.
                    Err(why) => failure = failure.filter(|_| level < SandboxLevel::Full).or(Some(why)),
                }
            }
        }
        self.why_not_more = failure;
        self
    }

    /// Without a word of the owner, every job gets the most.
    fn with_least(mut self, wanted: Option<SandboxLevel>) -> Self {
        self.least = wanted.unwrap_or(self.most);
        self
    }

    /// What the orchestrator is told.
    pub fn reported(&self) -> Sandbox {
        Sandbox { least: self.least, most: self.most, why_not_more: self.why_not_more.clone(), limits: None }
    }

    /// Why no job is taken: the owner wants more than the host can do.
    pub fn unfit(&self) -> Option<String> {
        let why = self.why_not_more.as_deref().unwrap_or("it was not tried");
        (self.least > self.most).then(|| {
            format!(
                "this host cannot confine jobs at level {} as --sandbox-min asks, only at {}: {why}",
                self.least.as_str(),
                self.most.as_str()
            )
        })
    }

    /// Confines the check whether the trainer can be started, and looks whether that succeeds.
    fn attempt(&self, config: &Config, scratch: &Path, level: SandboxLevel, has_users: bool) -> Result<(), String> {
        let dir = AttemptDir::at(&scratch.join(TRIAL));
        let tried = self.attempt_in(&dir, config, level, has_users);
        // What a killed agent has left is replaced by the next one.
        let _ = fs::remove_dir_all(dir.path());
        tried
    }

    fn attempt_in(
        &self,
        dir: &AttemptDir,
        config: &Config,
        level: SandboxLevel,
        has_users: bool,
    ) -> Result<(), String> {
        let said = |error: io::Error| error.to_string();
        let _ = fs::remove_dir_all(dir.path());
        fs::create_dir_all(dir.path()).map_err(said)?;
        let is_python = config.trainer.first().is_some_and(|program| is_python(Path::new(program)));
        let check = Some(check(&config.trainer)).filter(|check| is_python && succeeds(check));
        // A trainer that is not there is another fault, which doctor tells.
        let command = check.unwrap_or_else(|| ["sh", "-c", ":"].map(str::to_owned).to_vec());
        let grant = Grant {
            level,
            dir: dir.clone(),
            home: users::home(dir.path(), TRIAL),
            person: TRIAL.to_owned(),
            read: Vec::new(),
            write: Vec::new(),
            devices: Vec::new(),
            jobs: 1,
        };
        let plan = Self { has_users, has_users_at_files: has_users, ..self.clone() }.prepare(&grant).map_err(said)?;
        dir.write(FILE, &Job { command, plan }).map_err(said)?;
        let log = fs::File::create(dir.log()).map_err(said)?;
        let (mut child, mut reports) = super::start(dir, None, log).map_err(said)?;
        let started = reports.started();
        let because = |why| match Facts::read().cause().filter(|_| level == SandboxLevel::Full) {
            Some(cause) => format!("{why} ({cause})"),
            None => why,
        };
        let init = started.map_err(|failure| because(failure.why))?;
        let own = child.wait().map_err(said)?.code();
        let code = if init.is_some() { ended(&mut reports).map_err(said)? } else { own };
        if code == Some(0) {
            return Ok(());
        }
        let said = fs::read_to_string(dir.log()).unwrap_or_default();
        Err(format!(
            "the trainer's program does not start in it ({})",
            said.lines().last().unwrap_or("it says nothing").trim()
        ))
    }

    /// Makes an attempt's own directories, and decides what it is given.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn prepare(&self, grant: &Grant) -> io::Result<Plan> {
        let dir = &grant.dir;
        fs::create_dir_all(dir.control())?;
        // The trainer's user looks for the stop file in it, whatever the agent's umask.
        fs::set_permissions(dir.control(), fs::Permissions::from_mode(0o755))?;
        if grant.level == SandboxLevel::None {
            fs::create_dir_all(dir.work())?;
            return Ok(Plan::default());
        }
        let work_dir = grant.home.parent().and_then(Path::parent).unwrap_or(&grant.home);
        let has_user = if grant.level == SandboxLevel::Full { self.has_users } else { self.has_users_at_files };
        let user = if has_user { Some(users::user_of(work_dir, &grant.person)?) } else { None };
        for path in [&dir.work(), &dir.tmp()] {
            give(path, user)?;
        }
        users::alone(|| users::mark_used(&grant.home).and_then(|()| give(&grant.home, user)))?;
        give_all(&dir.output(), user)?;
        give_all(&dir.bundle(), user)?;
        if user.is_some() && grant.level < SandboxLevel::Full {
            // The trainer's user must get through to its own; what is private beside it stays so by its own mode.
            for above in dir.path().ancestors().take_while(|above| above.starts_with(work_dir)) {
                fs::set_permissions(above, fs::Permissions::from_mode(0o711))?;
            }
            fs::set_permissions(users::people(work_dir), fs::Permissions::from_mode(0o711))?;
        }
        let own_reads = [dir.bundle(), dir.control()];
        let own_writes = [dir.output(), dir.work(), grant.home.clone()];
        Ok(Plan {
            level: grant.level,
            user,
            read: [system::paths(), self.program_files.clone(), grant.read.clone(), own_reads.into()].concat(),
            write: [grant.write.clone(), own_writes.into()].concat(),
            devices: grant.devices.clone(),
            tmp: dir.tmp(),
            work: dir.work(),
            shared_memory_bytes: shared_memory_bytes() / u64::from(grant.jobs.max(1)),
            max_processes: Some(MAX_PROCESSES),
        })
    }
}

/// What an attempt is to be given.
#[derive(Debug, Clone)]
pub struct Grant {
    /// How closely it is confined.
    pub level: SandboxLevel,
    /// Its directory.
    pub dir: AttemptDir,
    /// The home of whose job it is.
    pub home: PathBuf,
    /// Whose job it is.
    pub person: String,
    /// Directories that the owner lets jobs read.
    pub read: Vec<PathBuf>,
    /// Directories that the owner lets jobs change.
    pub write: Vec<PathBuf>,
    /// The device files of its GPUs.
    pub devices: Vec<PathBuf>,
    /// How many jobs share the host.
    pub jobs: u32,
}

/// Half of the memory, as the kernel gives `/dev/shm`.
fn shared_memory_bytes() -> u64 {
    let pages = |name| nix::unistd::sysconf(name).ok().flatten().and_then(|value| u64::try_from(value).ok());
    let (count, size) = (pages(SysconfVar::_PHYS_PAGES), pages(SysconfVar::PAGE_SIZE));
    count.zip(size).map_or(1 << 30, |(count, size)| count * size / 2)
}

/// Makes a directory that belongs to the trainer's user and is closed to others.
fn give(path: &Path, user: Option<User>) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    match user {
        Some(user) => lchown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

/// Makes a directory if it is not there, and gives everything in it to the trainer's user. No link is followed. A file with
/// another name elsewhere stays its owner's: an earlier attempt may have made its own file of somebody else's by a link.
fn give_all(path: &Path, user: Option<User>) -> io::Result<()> {
    give(path, user)?;
    let Some(owner) = user else { return Ok(()) };
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            give_all(&entry.path(), user)?;
        } else if entry.metadata()?.nlink() == 1 {
            lchown(entry.path(), Some(owner.uid), Some(owner.gid))?;
        }
    }
    Ok(())
}

/// What a job at any level can do to others on an older kernel.
fn unscoped() -> Option<String> {
    let why = "this kernel does not keep abstract sockets apart, nor, at level files, signals of processes of one user \
               (Linux 6.12 with Landlock does)";
    (!landlock::has_scopes()).then(|| why.to_owned())
}

/// Why no job can be confined: it could put a link in the place of the trainer's own files.
fn exposed(program_files: &[PathBuf], paths: &Paths) -> Option<String> {
    let file = program_files.iter().find(|file| changeable_above(paths, file).is_some())?;
    let (name, dir) = changeable_above(paths, file)?;
    Some(format!(
        "the trainer needs {}, which lies in {{{name}}}, {}, that jobs may change (:rw): move one of them, or give that one \
         without :rw",
        file.display(),
        dir.display()
    ))
}

fn ended(reports: &mut Reports) -> io::Result<Option<i32>> {
    loop {
        match reports.next(PATIENCE)? {
            Some(Report::Ended { code, .. }) => return Ok(code),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

fn installation(path: &Path) -> Option<&Path> {
    let is_programs = path.file_name().is_some_and(|name| name == "bin" || name == "shims");
    path.parent().filter(|_| is_programs)
}

/// Without what would show a trainer the agent's own state, or a whole home directory.
fn program_files(command: &[String], search: &OsStr, work_dir: &Path) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let is_too_much = |path: &Path| {
        let holds = |inner: &Path| inner.starts_with(path);
        path == Path::new("/") || holds(work_dir) || home.as_deref().is_some_and(holds)
    };
    let needed = trainer_files::needed(command, search);
    // Programs in `bin` or `shims` of an installation, such as a virtual environment or pyenv, need the rest of it.
    let installations = needed.iter().filter_map(|path| installation(path)).filter(|path| !is_too_much(path));
    let needed: BTreeSet<PathBuf> = installations.map(Path::to_owned).chain(needed.iter().cloned()).collect();
    let (too_much, files): (Vec<_>, Vec<_>) = needed.into_iter().partition(|path| is_too_much(path));
    for path in too_much {
        tracing::warn!(
            path = %path.display(),
            "the trainer's files lie in a directory that jobs cannot be shown as a whole; move them, or name them with --path"
        );
    }
    files
}
