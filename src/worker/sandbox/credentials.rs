//! Who the trainer is, and what it can never become.

use std::fs;
use std::os::unix::fs::MetadataExt;

use caps::CapSet;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use super::plan::Plan;

/// How likely the kernel ends the trainer rather than its supervisor when memory runs out, from -1000 to 1000.
const OUT_OF_MEMORY_SCORE: &str = "500";

/// Limits that hold for the trainer and all that it starts.
///
/// # Errors
/// A sentence.
pub fn limit(plan: &Plan) -> Result<(), String> {
    // No core dump holds its secrets, and no handler of the host is fed with one.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| format!("core dumps cannot be switched off: {error}"))?;
    if let Some(count) = plan.max_processes {
        // Who is not root cannot raise what a small host allows its users.
        let most = getrlimit(Resource::RLIMIT_NPROC).map_or(count, |(_, hard)| count.min(hard));
        setrlimit(Resource::RLIMIT_NPROC, most, most)
            .map_err(|error| format!("the number of processes cannot be limited: {error}"))?;
    }
    // Raising it is always allowed; where /proc cannot be written, the kernel's own choice has to do.
    let _ = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    Ok(())
}

/// Keeps what setting up the namespaces takes when another program is started in a new user namespace: without root, that would
/// be lost. [`drop_privileges`] gives it up.
///
/// # Errors
/// A sentence.
pub fn keep_in_user_namespace() -> Result<(), String> {
    for needed in [caps::Capability::CAP_SYS_ADMIN, caps::Capability::CAP_SETPCAP] {
        caps::raise(None, CapSet::Inheritable, needed)
            .and_then(|()| caps::raise(None, CapSet::Ambient, needed))
            .map_err(|error| format!("{needed} cannot be kept in the user namespace: {error}"))?;
    }
    Ok(())
}

/// Gives up every privilege for good: groups, users, capabilities, and gaining any by a program that has them.
///
/// # Errors
/// A sentence.
pub fn drop_privileges(plan: &Plan) -> Result<(), String> {
    // While it still may: what is not in this set comes back by no program.
    let _ = caps::clear(None, CapSet::Ambient);
    if caps::has_cap(None, CapSet::Effective, caps::Capability::CAP_SETPCAP).unwrap_or(false) {
        caps::clear(None, CapSet::Bounding).map_err(|error| format!("capabilities cannot be given up: {error}"))?;
    }
    if let Some(user) = plan.user {
        // GPUs of some vendors are open to a group.
        let groups = plan.devices.iter().filter_map(|device| Some(Gid::from_raw(fs::metadata(device).ok()?.gid())));
        let groups: Vec<_> = groups.filter(|group| group.as_raw() != 0).chain([Gid::from_raw(user.gid)]).collect();
        become_user(Uid::from_raw(user.uid), Gid::from_raw(user.gid), &groups)
            .map_err(|error| format!("cannot become the user {}: {error}", user.uid))?;
    }
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(|error| format!("capabilities cannot be given up: {error}"))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("privileges can still be gained: {error}"))
}

fn become_user(uid: Uid, gid: Gid, groups: &[Gid]) -> nix::Result<()> {
    setgroups(groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}
