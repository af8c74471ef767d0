//! The programs under test.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

/// How a program is started: with these variables and `PATH` only.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

impl Program {
    pub fn new(path: PathBuf) -> Self {
        let search = std::env::var_os("PATH").unwrap_or_default();
        Self { path, arguments: Vec::new(), variables: vec![("PATH".into(), search)] }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A command of another program that gets this one and its arguments as further arguments.
    pub fn command_of(&self, wrapper: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(wrapper);
        command.args(arguments).arg(&self.path).args(&self.arguments);
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}
