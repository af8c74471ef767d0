//! Switches to another user, when root starts the agent for one: the server does so for jobs on its own machine.

use std::ffi::CString;

use nix::unistd::{User, geteuid, initgroups, setgid, setuid};

use crate::worker::exit::FatalError;

/// The user of this process. Child processes inherit the variable, and are that user already.
const RUN_AS_ENV: &str = "SIMPLETUNER_RUN_AS";

/// Switches to the user in the environment variable, with all its groups.
///
/// # Errors
/// If there is no such user, or this process may not switch.
pub fn become_user() -> Result<(), FatalError> {
    let Some(name) = std::env::var_os(RUN_AS_ENV) else { return Ok(()) };
    let name = name.to_string_lossy();
    let switch_error =
        |reason: &str| FatalError::config(format!("{RUN_AS_ENV}: this process cannot run as {name:?}: {reason}"));
    let user = User::from_name(&name).map_err(|error| switch_error(&error.to_string()))?;
    let user = user.ok_or_else(|| switch_error("this machine has no such user"))?;
    if user.uid == geteuid() {
        return Ok(());
    }
    let c_name = CString::new(user.name.as_bytes()).map_err(|error| switch_error(&error.to_string()))?;
    let result = initgroups(&c_name, user.gid).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
    result.map_err(|error| switch_error(error.desc()))
}
