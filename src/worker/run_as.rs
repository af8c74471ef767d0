//! Becoming another user, when root starts the agent for one: the server does so for jobs on its own machine.

use std::ffi::CString;

use nix::unistd::{User, geteuid, initgroups, setgid, setuid};

use crate::exit::Fatal;

/// Who this process is to be. What it starts inherits it, and is that user already.
const VARIABLE: &str = "SIMPLETUNER_RUN_AS";

/// Becomes the user that the environment names, with all its groups.
///
/// # Errors
/// If there is no such user, or this process may not become it.
pub fn follow() -> Result<(), Fatal> {
    let Some(name) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let name = name.to_string_lossy();
    let cannot = |why: &str| Fatal::config(format!("{VARIABLE}: this process cannot run as {name:?}: {why}"));
    let user = User::from_name(&name).map_err(|error| cannot(&error.to_string()))?;
    let user = user.ok_or_else(|| cannot("this machine has no such user"))?;
    if user.uid == geteuid() {
        return Ok(());
    }
    let name_of_user = CString::new(user.name.as_bytes()).map_err(|error| cannot(&error.to_string()))?;
    let became = initgroups(&name_of_user, user.gid).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
    became.map_err(|error| cannot(error.desc()))
}
