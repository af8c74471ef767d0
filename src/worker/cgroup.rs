//! The trainer's control group, if the host provides one (cgroup v2, also in the hybrid layout): processes started in
//! it stay in it, however they fork, and can be killed together. If it fails, sessions and the reaper must suffice.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::clock;
use crate::files::{AttemptKey, JobCgroup};

/// Prefix of the groups of attempts.
pub const JOB_CGROUP_PREFIX: &str = "st-";

/// The control group of one attempt.
#[derive(Debug, Clone)]
pub struct Cgroup(PathBuf);

fn not_available() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "cgroup v2 is not available")
}

impl Cgroup {
    /// Creates a group below the prepared one, with its limits; otherwise below this process's own.
    ///
    /// # Errors
    /// If there is no cgroup v2, or it is not delegated.
    pub fn create(key: &AttemptKey, parent: Option<&JobCgroup>) -> io::Result<Self> {
        let limited =
            parent.map(|parent| Self::create_below(&parent.base, key).and_then(|group| group.apply_limits(parent)));
        match limited {
            Some(Ok(group)) => return Ok(group),
            Some(Err(error)) => tracing::warn!("starting the job without limits: {error}"),
            None => {}
        }
        Self::create_below(&own_cgroup(None).ok_or_else(not_available)?, key)
    }

    fn create_below(parent: &Path, key: &AttemptKey) -> io::Result<Self> {
        // Never the name of another attempt's group, past or future: a process that knows the name could kill the
        // processes in it.
        let unique = clock::random_secret()?;
        let path = parent.join(format!("{JOB_CGROUP_PREFIX}{}-{}-{}", key.job_id, key.attempt, &unique[..8]));
        fs::create_dir(&path)?;
        let group = Self(path);
        if group.kill_file().exists() {
            return Ok(group);
        }
        group.remove();
        Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel cannot kill a whole cgroup (Linux 5.14 can)"))
    }

    /// Sets these limits.
    fn apply_limits(self, limits: &JobCgroup) -> io::Result<Self> {
        let set = |file: &str, value: u64| fs::write(self.0.join(file), value.to_string());
        let limited = limits.memory.map_or(Ok(()), |bytes| {
            // If only one process of a trainer is killed, the others wait for it.
            set("memory.max", bytes).and_then(|()| set("memory.oom.group", 1))
        });
        let limited = limited.and_then(|()| limits.processes.map_or(Ok(()), |count| set("pids.max", count)));
        if let Err(error) = limited {
            self.remove();
            return Err(error);
        }
        Ok(self)
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

    /// Starts a process in the group: this process enters it, and leaves it afterwards. So even the first fork of the
    /// new process is inside. The error means that this process is still in it.
    pub fn spawn_inside<T>(&self, spawn: impl FnOnce() -> T) -> (T, io::Result<()>) {
        let Some(own_group) = own_cgroup(None) else { return (spawn(), Err(not_available())) };
        let entered = fs::write(self.0.join("cgroup.procs"), "0");
        let spawned = spawn();
        let result = entered.and_then(|()| fs::write(own_group.join("cgroup.procs"), "0"));
        (spawned, result)
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

    /// Removes the group, and groups that the trainer may have created below it, once they are empty.
    pub fn remove(&self) {
        remove_cgroup(&self.0);
    }
}

fn remove_cgroup(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_cgroup(&entry.path());
        }
    }
    if let Err(error) = fs::remove_dir(group) {
        tracing::debug!("cannot remove {}: {error}", group.display());
    }
}

/// The value of a name in a file of the kernel.
pub fn parse_counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The directory of this process's group: of version 2, or of a controller of version 1.
pub fn own_cgroup(controller: Option<&str>) -> Option<PathBuf> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).ok();
    find_cgroup(&read("mountinfo")?, &read("cgroup")?, controller)
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
