//! The user, limits and privileges of the trainer.

use std::fs;
use std::os::unix::fs::MetadataExt;

use caps::CapSet;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use super::plan::SandboxPlan;

/// Makes the kernel kill the trainer rather than its supervisor when memory is full; from -1000 to 1000.
const OOM_SCORE_ADJ: &str = "500";

/// Sets limits for the trainer and all its processes.
///
/// # Errors
/// A message.
pub fn apply_limits(plan: &SandboxPlan) -> Result<(), String> {
    // No core dump contains its secrets, or is passed to a handler of the host.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| format!("cannot disable core dumps: {error}"))?;
    if let Some(count) = plan.max_processes {
        // Only root can raise a lower limit of the host.
        let limit = getrlimit(Resource::RLIMIT_NPROC).map_or(count, |(_, hard)| count.min(hard));
        setrlimit(Resource::RLIMIT_NPROC, limit, limit)
            .map_err(|error| format!("cannot limit the number of processes: {error}"))?;
    }
    // Raising it is always allowed; if /proc is not writable, the kernel's default stays.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ);
    Ok(())
}

/// Keeps the capabilities that setting up namespaces needs when another program is started in a new user namespace:
/// without root they would be lost. [`drop_privileges`] drops them.
///
/// # Errors
/// A message.
pub fn keep_capabilities() -> Result<(), String> {
    for capability in [caps::Capability::CAP_SYS_ADMIN, caps::Capability::CAP_SETPCAP] {
        caps::raise(None, CapSet::Inheritable, capability)
            .and_then(|()| caps::raise(None, CapSet::Ambient, capability))
            .map_err(|error| format!("cannot keep {capability} in the user namespace: {error}"))?;
    }
    Ok(())
}

/// Drops every privilege permanently: groups, users, capabilities, and privileged programs.
///
/// # Errors
/// A message.
pub fn drop_privileges(plan: &SandboxPlan) -> Result<(), String> {
    // While it is still allowed: no program can regain what is not in this set.
    let _ = caps::clear(None, CapSet::Ambient);
    if caps::has_cap(None, CapSet::Effective, caps::Capability::CAP_SETPCAP).unwrap_or(false) {
        caps::clear(None, CapSet::Bounding).map_err(|error| format!("cannot drop capabilities: {error}"))?;
    }
    if let Some(user) = plan.user {
        // GPUs of some vendors are accessible to a group.
        let groups = plan.devices.iter().filter_map(|device| Some(Gid::from_raw(fs::metadata(device).ok()?.gid())));
        let groups: Vec<_> = groups.filter(|group| group.as_raw() != 0).chain([Gid::from_raw(user.gid)]).collect();
        become_user(Uid::from_raw(user.uid), Gid::from_raw(user.gid), &groups)
            .map_err(|error| format!("cannot switch to the user {}: {error}", user.uid))?;
    }
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(|error| format!("cannot drop capabilities: {error}"))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("cannot prevent new privileges: {error}"))
}

fn become_user(uid: Uid, gid: Gid, groups: &[Gid]) -> nix::Result<()> {
    setgroups(groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}
