//! The attempt's sandbox: which parts of the host it gets, and how its environment describes them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use app::domain::sandbox::SandboxLevel;
use app::threads::run_io;

use super::AttemptRunner;
use super::prepare::host_fault_exit;
use crate::worker::config::paths::HostDirectory;
use crate::worker::files::AttemptExit;
use crate::worker::sandbox::host::SandboxGrant;
use crate::worker::sandbox::plan::{FILE, SandboxJob};
use crate::worker::sandbox::{environment, users};

impl AttemptRunner {
    /// The sandbox level: the host's minimum, or a higher one that the job requests.
    fn sandbox_level(&self) -> SandboxLevel {
        self.context.sandbox.min_level.max(self.spec.offer.sandbox)
    }

    /// Creates the trainer's directories, and writes its sandbox plan, for the command that `write_spec` returns.
    ///
    /// # Errors
    /// If this host does not support the required level; another host may.
    pub(super) async fn prepare_sandbox(
        &self,
        write_spec: impl FnOnce() -> io::Result<Vec<String>> + Send + 'static,
    ) -> Result<(), AttemptExit> {
        let (level, host) = (self.sandbox_level(), self.context.sandbox.clone());
        if level > host.max_level {
            let reason = host.limit_reason.as_deref().unwrap_or("not tested");
            let (requested, supported) = (level.as_str(), host.max_level.as_str());
            return Err(host_fault_exit(&format!(
                "this host supports sandbox level {supported} at most, not {requested}: {reason}"
            )));
        }
        let exposed = self.context.config.exposed_directories().into_values();
        let (write, read): (Vec<_>, Vec<_>) = exposed.partition(|dir| dir.writable);
        let only_paths = |dirs: Vec<HostDirectory>| dirs.into_iter().map(|dir| dir.path).collect();
        let gpus = self.spec.offer.gpus.clone();
        let grant = SandboxGrant {
            level,
            dir: self.dir.clone(),
            home: self.home_dir(),
            owner: users::owner_name(&self.spec),
            read_paths: only_paths(read),
            write_paths: only_paths(write),
            cwd: self.spec.cwd.clone(),
            devices: self.context.hardware.device_files(&gpus),
            jobs: self.context.config.max_jobs.resolve(self.context.hardware.gpus.len()),
        };
        let exclusive = self.spec.offer.exclusive;
        let prepare = move || {
            let command = write_spec()?;
            let plan = host.prepare(&grant)?;
            match level {
                // An earlier agent may have prepared another level.
                SandboxLevel::None if !exclusive => grant.dir.remove(FILE),
                // Even without a sandbox, an exclusive trainer must end with its supervisor, which enforces its lease.
                SandboxLevel::None | SandboxLevel::Files | SandboxLevel::Full => {
                    grant.dir.write_json_unsynced(FILE, &SandboxJob { command, plan })
                }
            }
        };
        run_io(prepare).await.map_err(|error| host_fault_exit(&format!("cannot prepare the job's directory: {error}")))
    }

    /// The home directory with the caches of this user's trainers.
    pub(super) fn home_dir(&self) -> PathBuf {
        users::home_dir(&self.context.config.work_dir, &users::owner_name(&self.spec))
    }

    /// The environment of a sandboxed trainer, without variables that name inaccessible paths.
    pub(super) fn sandbox_environment(&self, variables: BTreeMap<String, String>) -> BTreeMap<String, String> {
        if self.sandbox_level() == SandboxLevel::None {
            return variables;
        }
        let paths: Vec<_> = self.context.config.exposed_directories().into_values().map(|dir| dir.path).collect();
        let tmp = if self.sandbox_level() == SandboxLevel::Full { PathBuf::from("/tmp") } else { self.dir.tmp_dir() };
        environment::sandbox_environment(variables, &self.home_dir(), &tmp, &paths)
    }
}
