//! Shared by the command lines of both programs.

pub mod duration;

use clap::Command;
use clap::builder::Resettable;

/// Treats environment variables that are set but empty as unset: templates and compose files often leave such
/// variables.
#[must_use]
pub fn ignore_empty_env_vars(command: Command) -> Command {
    let is_empty = |name: &std::ffi::OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| if arg.get_env().is_some_and(is_empty) { arg.env(Resettable::Reset) } else { arg })
        .mut_subcommands(ignore_empty_env_vars)
}
