//! Output of commands: results to stdout, messages to stderr, prompts to the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use app::domain::time::Timestamp;
use clap::Args;
use console::Term;
use serde_json::Value;

use super::browser::Browser;
use super::table::{Table, TableCell, render_facts};
use crate::clock::{Clock, SystemClock};
use crate::exit::ExitError;

#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::doc_markdown, reason = "a terminal shows it as it is")]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub struct OutputArgs {
    /// Print the API's JSON: one document, lists complete.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print IDs only.
    #[arg(long, short, global = true, conflicts_with = "json")]
    pub quiet: bool,
    /// Disable colors (also: NO_COLOR; CLICOLOR_FORCE=1 enables them everywhere).
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Delete or replace without asking.
    #[arg(long, short, global = true)]
    pub yes: bool,
}

/// The format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    /// The document of the API.
    Json,
    /// One id per line.
    Ids,
}

/// Asks the user at the terminal.
pub trait Prompter {
    /// Shows a question and reads a line, with or without echo; `None` without a terminal.
    fn prompt(&mut self, question: &str, echo: bool) -> io::Result<Option<String>>;
}

pub struct Output<'w> {
    /// For results.
    pub out: &'w mut dyn Write,
    /// For everything else.
    pub err: &'w mut dyn Write,
    pub prompter: &'w mut dyn Prompter,
    pub format: OutputFormat,
    pub use_color: bool,
    /// The width in columns, if it is a terminal.
    pub width: Option<usize>,
    /// Whether progress may be drawn on stderr.
    pub shows_progress: bool,
    /// Whether questions are answered with yes.
    pub assume_yes: bool,
    /// For pages, if there is a user at the terminal.
    pub browser: Option<Browser>,
    /// For relative times.
    pub clock: Arc<dyn Clock>,
}

impl Output<'_> {
    /// Prints a message, unless `--quiet` is set.
    pub fn print_info(&mut self, message: impl AsRef<str>) -> Result<(), ExitError> {
        if self.format == OutputFormat::Ids {
            return Ok(());
        }
        self.print_warning(message)
    }

    /// Prints a message, also with `--quiet`.
    pub fn print_warning(&mut self, message: impl AsRef<str>) -> Result<(), ExitError> {
        Ok(writeln!(self.err, "{}", message.as_ref())?)
    }

    /// Prints a line of the result.
    pub fn print_line(&mut self, line: impl AsRef<str>) -> Result<(), ExitError> {
        writeln!(self.out, "{}", line.as_ref())?;
        Ok(self.out.flush()?)
    }

    /// Prints a result as it is.
    pub fn print_bytes(&mut self, bytes: &[u8]) -> Result<(), ExitError> {
        self.out.write_all(bytes)?;
        Ok(self.out.flush()?)
    }

    /// Prints a document of the API in the requested format.
    pub fn print_document(
        &mut self,
        document: &Value,
        ids: impl IntoIterator<Item = String>,
        render: impl FnOnce(&Self) -> String,
    ) -> Result<(), ExitError> {
        let text = match self.format {
            OutputFormat::Json => format!("{document:#}\n"),
            OutputFormat::Ids => ids.into_iter().map(|id| id + "\n").collect(),
            OutputFormat::Text => render(self),
        };
        self.print_bytes(text.as_bytes())
    }

    /// Formats a table for this terminal.
    pub fn format_table(&self, table: &Table) -> String {
        table.render(self.width, self.use_color)
    }

    /// Formats facts for this terminal.
    pub fn format_facts(&self, facts: &[(&str, TableCell)]) -> String {
        render_facts(facts, self.use_color)
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Asks for confirmation.
    ///
    /// # Errors
    /// Returns an error if the answer is no, or if there is no terminal.
    pub fn confirm(&mut self, question: &str) -> Result<(), ExitError> {
        if self.assume_yes {
            return Ok(());
        }
        match self.prompter.prompt(&format!("{question} [y/N] "), true)? {
            None => Err(ExitError::usage(format!("{question} There is no terminal to confirm this: add --yes"))),
            Some(input) if matches!(input.trim().to_lowercase().as_str(), "y" | "yes") => Ok(()),
            Some(_) => Err(ExitError::failed("cancelled, nothing was changed".to_owned())),
        }
    }
}

/// The terminal of this process.
pub struct TerminalPrompter;

impl Prompter for TerminalPrompter {
    fn prompt(&mut self, question: &str, echo: bool) -> io::Result<Option<String>> {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(None);
        }
        let term = Term::stderr();
        term.write_str(question)?;
        if echo { term.read_line() } else { term.read_secure_line() }.map(Some)
    }
}

/// Runs something with the output of this process.
pub fn with_process_output<T>(output: &OutputArgs, work: impl FnOnce(&mut Output<'_>) -> T) -> T {
    let is_terminal = io::stdout().is_terminal();
    let variable = |name: &str| std::env::var(name).ok();
    // A locked stdout writes each line immediately, which readers of a followed log through a pipe need.
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    work(&mut Output {
        out: &mut out,
        err: &mut err,
        prompter: &mut TerminalPrompter,
        format: output_format(output),
        use_color: should_use_color(output.no_color, is_terminal, variable),
        width: is_terminal.then(|| usize::from(Term::stdout().size().1)),
        shows_progress: io::stderr().is_terminal() && !output.quiet,
        assume_yes: output.yes,
        browser: Browser::find(std::env::consts::OS, variable).filter(|_| is_terminal),
        clock: Arc::new(SystemClock),
    })
}

/// Returns the format that the flags select.
pub fn output_format(output: &OutputArgs) -> OutputFormat {
    match (output.json, output.quiet) {
        (true, _) => OutputFormat::Json,
        (false, true) => OutputFormat::Ids,
        (false, false) => OutputFormat::Text,
    }
}

/// Returns whether to use colors, by flag, environment and terminal.
fn should_use_color(no_color: bool, is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_forced = variable("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
    !no_color && !is_set("NO_COLOR") && (is_forced || (is_terminal && !is_dumb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_for_terminals_unless_set() {
        for (flag, is_terminal, variables, expected) in [
            (false, true, &[][..], true),
            (false, false, &[], false),
            (true, true, &[], false),
            (false, true, &[("NO_COLOR", "1")], false),
            (false, true, &[("NO_COLOR", "")], true),
            (false, false, &[("CLICOLOR_FORCE", "1")], true),
            (false, false, &[("CLICOLOR_FORCE", "0")], false),
            (false, false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (true, false, &[("CLICOLOR_FORCE", "1")], false),
            (false, true, &[("TERM", "dumb")], false),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value): &(&str, &str)| (*value).to_owned())
            };
            assert_eq!(should_use_color(flag, is_terminal, variable), expected, "{flag} {is_terminal} {variables:?}");
        }
    }
}
