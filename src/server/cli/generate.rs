//! `simpletuner completions` and `simpletuner man`: made from the definition of the command line, so never out of date.

use clap::{Args, Command};
use clap_complete::Shell;

use super::screen::Screen;
use crate::boot::exit::Exit;

/// `simpletuner completions`
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// For this shell.
    shell: Shell,
}

/// `simpletuner man`
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Of this command: `simpletuner man jobs submit` [default: of all].
    command: Vec<String>,
}

/// Prints a script for a shell.
pub fn completions(args: &CompletionsArgs, mut cli: Command, screen: &mut Screen<'_>) -> Result<(), Exit> {
    // It panics where it cannot write; into memory it can.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "simpletuner", &mut script);
    screen.bytes(&script)
}

/// Prints a page for `man -l -`.
pub fn man(args: &ManArgs, mut cli: Command, screen: &mut Screen<'_>) -> Result<(), Exit> {
    cli.build();
    let mut found = &cli;
    for word in &args.command {
        found = found.find_subcommand(word).ok_or_else(|| {
            Exit::usage(format!("there is no command {word:?} in `{}`", found.get_bin_name().unwrap_or_default()))
        })?;
    }
    let mut page = Vec::new();
    let name = found.get_bin_name().unwrap_or("simpletuner").replace(' ', "-");
    clap_mangen::Man::new(found.clone()).title(name).render(&mut page)?;
    screen.bytes(&page)
}
