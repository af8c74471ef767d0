//! The attempt's sandbox: what it is given of this host, and what its trainer's environment says of that.

use std::collections::BTreeMap;
use std::path::PathBuf;

use app::domain::sandbox::SandboxLevel;

use super::prepare::host_fault;
use super::{Attempt, blocking};
use crate::config::paths::Directory;
use crate::files::Exit;
use crate::sandbox::host::Grant;
use crate::sandbox::plan::{FILE, Job};
use crate::sandbox::{environment, users};

impl Attempt {
    /// How closely the trainer is confined: as the host's owner wants at least, or closer if the job asks for it.
    fn level(&self) -> SandboxLevel {
        self.context.sandbox.least.max(self.spec.offer.sandbox)
    }

    /// Makes the trainer's directories, and writes down its sandbox.
    ///
    /// # Errors
    /// If this host cannot confine it as it should be: another one may.
    pub(super) async fn make_sandbox(&self, command: Vec<String>) -> Result<(), Exit> {
        let (level, host) = (self.level(), self.context.sandbox.clone());
        if level > host.most {
            let why = host.why_not_more.as_deref().unwrap_or("it was not tried");
            let (wanted, most) = (level.as_str(), host.most.as_str());
            return Err(host_fault(&format!("this host confines jobs at level {most} at most, not {wanted}: {why}")));
        }
        let paths = self.context.config.paths.values();
        let (write, read): (Vec<_>, Vec<_>) = paths.cloned().partition(|dir| dir.writable);
        let only_paths = |dirs: Vec<Directory>| dirs.into_iter().map(|dir| dir.path).collect();
        let granted = self.spec.offer.gpus.clone();
        let grant = Grant {
            level,
            dir: self.dir.clone(),
            home: self.home(),
            person: users::person(&self.spec),
            read: only_paths(read),
            write: only_paths(write),
            devices: self.context.hardware.device_files(&granted),
            jobs: self.context.config.max_jobs.on(self.context.hardware.gpus.len()),
        };
        let make = move || {
            let plan = host.prepare(&grant)?;
            match level {
                // An earlier agent may have prepared it with another level.
                SandboxLevel::None => grant.dir.remove(FILE),
                SandboxLevel::Files | SandboxLevel::Full => grant.dir.write(FILE, &Job { command, plan }),
            }
        };
        blocking(make).await.map_err(|error| host_fault(&format!("the job's sandbox cannot be prepared: {error}")))
    }

    /// Where the caches of this person's trainers are.
    pub(super) fn home(&self) -> PathBuf {
        users::home(&self.context.config.work_dir, &users::person(&self.spec))
    }

    /// The environment of a trainer that is confined: what points to places out of its reach is taken away.
    pub(super) fn confined(&self, variables: BTreeMap<String, String>) -> BTreeMap<String, String> {
        if self.level() == SandboxLevel::None {
            return variables;
        }
        let paths: Vec<_> = self.context.config.paths.values().map(|dir| dir.path.clone()).collect();
        let tmp = if self.level() == SandboxLevel::Full { PathBuf::from("/tmp") } else { self.dir.tmp() };
        environment::confined(variables, &self.home(), &tmp, &paths)
    }
}
