//! What both programs' command lines have in common.

use clap::Command;
use clap::builder::Resettable;

/// The command, for which a variable that is set and empty counts as unset: templates and compose files leave such.
#[must_use]
pub fn ignoring_empty_variables(command: Command) -> Command {
    let is_empty = |name: &std::ffi::OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| if arg.get_env().is_some_and(is_empty) { arg.env(Resettable::Reset) } else { arg })
        .mut_subcommands(ignoring_empty_variables)
}
