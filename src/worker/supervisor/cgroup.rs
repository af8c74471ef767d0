//! A control group of the trainer's own, where this host gives us one (cgroup v2, also in the hybrid layout): what is born
//! in it stays in it, whatever it forks, and can be killed all at once. Everything here may fail, and then sessions and
//! the reaper have to do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::clock;
use crate::files::{Key, Place};
use crate::limits::groups::OF_JOBS;

/// A group that was made for one attempt.
#[derive(Debug, Clone)]
pub struct Cgroup(PathBuf);

/// Why none can be made.
fn absent() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "there is no cgroup v2 here")
}

impl Cgroup {
    /// Makes one at the place that was prepared for it, with its limits; else below this process's own.
    ///
    /// # Errors
    /// If there is no cgroup v2, or nobody has given it to us.
    pub fn make(key: &Key, place: Option<&Place>) -> io::Result<Self> {
        let limited = place.map(|place| Self::below(&place.base, key).and_then(|made| made.limit(place)));
        match limited {
            Some(Ok(made)) => return Ok(made),
            Some(Err(error)) => tracing::warn!("the job has no limits of its own: {error}"),
            None => {}
        }
        Self::below(&own(None).ok_or_else(absent)?, key)
    }

    fn below(parent: &Path, key: &Key) -> io::Result<Self> {
        // Never one that another agent's attempt has, had, or will have: whoever knows the name may kill what is in it.
        let unique = clock::secret()?;
        let path = parent.join(format!("{OF_JOBS}{}-{}-{}", key.job_id, key.attempt, &unique[..8]));
        fs::create_dir(&path)?;
        let made = Self(path);
        if made.kill_file().exists() {
            return Ok(made);
        }
        made.remove();
        Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel cannot kill a whole cgroup (Linux 5.14 can)"))
    }

    /// Holds whatever will be in it to these limits.
    fn limit(self, place: &Place) -> io::Result<Self> {
        let set = |file: &str, value: u64| fs::write(self.0.join(file), value.to_string());
        let limited = place.memory.map_or(Ok(()), |bytes| {
            // One process of a trainer that is killed leaves the others waiting for it.
            set("memory.max", bytes).and_then(|()| set("memory.oom.group", 1))
        });
        let limited = limited.and_then(|()| place.processes.map_or(Ok(()), |count| set("pids.max", count)));
        if let Err(error) = limited {
            self.remove();
            return Err(error);
        }
        Ok(self)
    }

    /// One that a supervisor has made.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn kill_file(&self) -> PathBuf {
        self.0.join("cgroup.kill")
    }

    /// Has something born in it: this process goes in, and comes back out when that is done. So not even the first fork of
    /// what was born can be outside. The error says that this process is still in it.
    pub fn around<T>(&self, birth: impl FnOnce() -> T) -> (T, io::Result<()>) {
        let Some(home) = own(None) else { return (birth(), Err(absent())) };
        let moved = fs::write(self.0.join("cgroup.procs"), "0");
        let born = birth();
        let back = moved.and_then(|()| fs::write(home.join("cgroup.procs"), "0"));
        (born, back)
    }

    /// Kills all that is in it.
    pub fn kill(&self) -> io::Result<()> {
        fs::write(self.kill_file(), "1")
    }

    /// Whether nothing is in it, nor below it. One that is not there holds nothing.
    pub fn is_empty(&self) -> bool {
        match fs::read_to_string(self.0.join("cgroup.events")) {
            Ok(text) => counter(&text, "populated") == Some(0),
            Err(_) => !self.0.exists(),
        }
    }

    /// Removes it, with what the trainer may have made below it, once it is empty.
    pub fn remove(&self) {
        remove(&self.0);
    }
}

fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    if let Err(error) = fs::remove_dir(group) {
        tracing::debug!("{} stays: {error}", group.display());
    }
}

/// The number that a file of the kernel has for a name.
pub fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The directory of the group that this process is in: of version 2, or of a controller of version 1.
pub fn own(controller: Option<&str>) -> Option<PathBuf> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).ok();
    find(&read("mountinfo")?, &read("cgroup")?, controller)
}

/// By what `/proc/self/mountinfo` and `/proc/self/cgroup` say.
fn find(mounts: &str, groups: &str, controller: Option<&str>) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let fits = match controller {
            None => controllers.is_empty(),
            Some(wanted) => controllers.split(',').any(|name| name == wanted),
        };
        fits.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let (root, point) = (mount.split(' ').nth(3)?, mount.split(' ').nth(4)?);
        let mut system = system.split(' ');
        let fits = match (system.next()?, controller) {
            ("cgroup2", None) => true,
            ("cgroup", Some(wanted)) => system.next_back()?.split(',').any(|name| name == wanted),
            _ => false,
        };
        // What is above the mounted part cannot be reached from here.
        let below = Path::new(path).strip_prefix(root).ok().filter(|_| fits && !path.contains(".."))?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
#[path = "../tests/cgroup.rs"]
mod tests;
