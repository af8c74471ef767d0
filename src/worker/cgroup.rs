//! The trainer's control group, if the host provides one (cgroup v2, also in the hybrid layout): processes started in
//! it stay in it, however they fork, and can be killed together. If it fails, sessions and the reaper must suffice.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::worker::clock;
use crate::worker::files::JobCgroup;

/// Prefix of the groups of attempts.
pub const JOB_CGROUP_PREFIX: &str = "st-";

/// The control group of one attempt.
#[derive(Debug, Clone)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    fn create_below(parent: &Path) -> io::Result<Self> {
        // Never the name of another group, past or future: a process that knows the name could kill the processes in it.
        let unique = clock::random_secret()?;
        let path = parent.join(format!("{JOB_CGROUP_PREFIX}{}", &unique[..12]));
        fs::create_dir(&path)?;
        let group = Self(path);
        if group.kill_file().exists() {
            return Ok(group);
        }
        group.remove();
        Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel cannot kill a whole cgroup (Linux 5.14 can)"))
    }

    /// A group that a supervisor has created.
    pub fn from_path(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn kill_file(&self) -> PathBuf {
        self.0.join("cgroup.kill")
    }

    /// Kills all processes in it.
    pub fn kill(&self) -> io::Result<()> {
        fs::write(self.kill_file(), "1")
    }

    /// Whether the group and those below it have no processes. A missing group is empty.
    pub fn is_empty(&self) -> bool {
        match fs::read_to_string(self.0.join("cgroup.events")) {
            Ok(text) => parse_counter(&text, "populated") == Some(0),
            Err(_) => !self.0.exists(),
        }
    }

    /// Removes the group, if it exists, and groups that the trainer may have created below it, once they are empty.
    pub fn remove(&self) {
        remove_cgroup(&self.0);
    }
}

/// The group of the next trainer, which this process has entered in advance: a trainer that it starts is inside from its
/// first instruction, however it forks. To enter or leave a group, the kernel waits for all CPUs, up to 20 ms.
#[derive(Debug)]
pub struct EnteredCgroup {
    group: Cgroup,
    /// Where this process was before.
    outside: PathBuf,
}

impl EnteredCgroup {
    /// Creates a group below the prepared one, if there is one and it can be used, or below `outside`, and enters it.
    ///
    /// # Errors
    /// If there is no cgroup v2, or it is not delegated.
    pub fn create(prepared: Option<&Path>, outside: &Path) -> io::Result<Self> {
        let below_prepared = prepared.map(Cgroup::create_below).transpose();
        let group = match below_prepared {
            Ok(Some(group)) => group,
            Ok(None) => Cgroup::create_below(outside)?,
            Err(error) => {
                tracing::warn!("the next job will have no limits: {error}");
                Cgroup::create_below(outside)?
            }
        };
        match enter(&group.0) {
            Ok(()) => Ok(Self { group, outside: outside.to_owned() }),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    pub fn group(&self) -> &Cgroup {
        &self.group
    }

    /// Sets the limits of a job, if the group is where they can be set.
    pub fn apply_limits(&self, limits: &JobCgroup) {
        let set = |file: &str, value: Option<u64>| {
            value.map_or(Ok(()), |value| fs::write(self.group.0.join(file), value.to_string()))
        };
        let result = set("memory.max", limits.memory).and_then(|()| set("pids.max", limits.processes));
        if let Err(error) = result {
            tracing::warn!("starting the job without limits: {error}");
        }
    }

    /// Leaves the group, which can then be killed. If the trainer exceeds its memory limit from now on, the kernel kills
    /// the whole group, because other processes would wait for a killed one.
    ///
    /// # Errors
    /// If this process is still in it.
    pub fn leave(&self) -> io::Result<()> {
        enter(&self.outside)?;
        // Without a memory limit there is no such file.
        let _ = fs::write(self.group.0.join("memory.oom.group"), "1");
        Ok(())
    }

    /// Whether other processes than this one are in it.
    pub fn has_others(&self) -> bool {
        let own_pid = std::process::id().to_string();
        let read = |file: &str| fs::read_to_string(self.group.0.join(file)).unwrap_or_default();
        // A trainer may create groups below its own.
        read("cgroup.procs").lines().any(|pid| pid != own_pid)
            || parse_counter(&read("cgroup.stat"), "nr_descendants") != Some(0)
    }
}

/// Moves this process into a group.
///
/// # Errors
/// If it is still where it was.
pub fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// Removes groups of jobs that have no processes, which killed supervisors have left.
pub fn remove_unused(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(JOB_CGROUP_PREFIX) {
            // Only an empty group can be removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn remove_cgroup(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_cgroup(&entry.path());
        }
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!("cannot remove {}: {error}", group.display());
        }
        _ => {}
    }
}

/// The value of a name in a file of the kernel.
pub fn parse_counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The directory of this process's group: of version 2, or of a controller of version 1.
pub fn own_cgroup(controller: Option<&str>) -> Option<PathBuf> {
    // Long in containers, and constant; the group changes when this process enters one.
    static MOUNTS: LazyLock<Option<String>> = LazyLock::new(|| fs::read_to_string("/proc/self/mountinfo").ok());
    find_cgroup(MOUNTS.as_ref()?, &fs::read_to_string("/proc/self/cgroup").ok()?, controller)
}

/// From `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn find_cgroup(mounts: &str, groups: &str, controller: Option<&str>) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let fits = match controller {
            None => controllers.is_empty(),
            Some(controller) => controllers.split(',').any(|name| name == controller),
        };
        fits.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let (root, point) = (mount.split(' ').nth(3)?, mount.split(' ').nth(4)?);
        let mut system = system.split(' ');
        let fits = match (system.next()?, controller) {
            ("cgroup2", None) => true,
            ("cgroup", Some(controller)) => system.next_back()?.split(',').any(|name| name == controller),
            _ => false,
        };
        // Groups above the mounted part cannot be reached from here.
        let below = Path::new(path).strip_prefix(root).ok().filter(|_| fits && !path.contains(".."))?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
#[path = "tests/cgroup.rs"]
mod tests;
