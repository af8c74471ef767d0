//! `simpletuner completions` and `simpletuner man`, generated from the definition of the command line.

use clap::{Args, Command};
use clap_complete::Shell;

use super::output::Output;
use crate::exit::ExitError;

/// `simpletuner completions`
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// Shell to complete for.
    shell: Shell,
}

/// `simpletuner man`
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Command to describe: `simpletuner man jobs submit` [default: all].
    command: Vec<String>,
}

/// Prints a completion script.
pub fn completions(args: &CompletionsArgs, mut cli: Command, output: &mut Output<'_>) -> Result<(), ExitError> {
    // The generator panics if it cannot write, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "simpletuner", &mut script);
    output.print_bytes(&script)
}

/// Prints a page for `man -l -`.
pub fn man(args: &ManArgs, mut cli: Command, output: &mut Output<'_>) -> Result<(), ExitError> {
    cli.build();
    let mut command = &cli;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            ExitError::usage(format!("`{}` has no command {name:?}", command.get_bin_name().unwrap_or_default()))
        })?;
    }
    let mut page = Vec::new();
    let name = command.get_bin_name().unwrap_or("simpletuner").replace(' ', "-");
    clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
    output.print_bytes(&page)
}
