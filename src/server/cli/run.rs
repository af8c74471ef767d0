//! Common parts of the operator's commands: startup, exit, and parsing of flags and responses.

use std::process::ExitCode;

use app::domain::labels::Labels;
use app::protocol::jobs::overrides;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::client::Client;
use super::client::connection::ConnectionArgs;
use super::output::{Output, OutputArgs, with_process_output};
use crate::exit::ExitError;

/// Runs a command that needs a server.
pub fn with_server<W>(connection: &ConnectionArgs, output: &OutputArgs, work: W) -> ExitCode
where
    W: AsyncFnOnce(&Client, &mut Output<'_>) -> Result<(), ExitError>,
{
    with_output(output, async |screen| work(&connect(connection, screen)?, screen).await)
}

/// Runs a command that may not need a server.
pub fn with_output<W>(output: &OutputArgs, work: W) -> ExitCode
where
    W: AsyncFnOnce(&mut Output<'_>) -> Result<(), ExitError>,
{
    let runtime = match build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return ExitError::failed(format!("cannot start the async runtime: {error}")).print(),
    };
    let result = with_process_output(output, |screen| runtime.block_on(work(screen)));
    // Remaining tasks are for responses that are no longer needed.
    runtime.shutdown_background();
    result.map_or_else(|exit| exit.print(), |()| ExitCode::SUCCESS)
}

/// Returns the client of the selected server.
pub fn connect(connection: &ConnectionArgs, output: &mut Output<'_>) -> Result<Client, ExitError> {
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let connection = connection.resolve(&host, |name| std::env::var(name).ok())?;
    for warning in &connection.warnings {
        output.print_warning(warning)?;
    }
    Client::new(connection)
}

/// Builds a runtime with its own thread for Ctrl-C, which must work while a prompt waits.
fn build_runtime() -> std::io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    // A password is typed without echo, which must be restored.
    let terminal_settings = tcgetattr(std::io::stdin()).ok();
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            if let Some(terminal_settings) = terminal_settings {
                let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &terminal_settings);
            }
            std::process::exit(i32::from(ExitError::interrupted().code()));
        }
    });
    Ok(runtime)
}

/// Parses a part of a response.
pub fn parse_value<T: DeserializeOwned>(value: &Value) -> Result<T, ExitError> {
    T::deserialize(value)
        .map_err(|error| ExitError::failed(format!("unexpected response ({error}); the server may be a newer version")))
}

/// Parses one of these words; clap lists, completes and suggests them.
pub fn one_of(values: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(values)
}

/// Parses `KEY=VALUE`.
pub fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Parses a configuration value from a flag.
pub fn parse_override(text: &str) -> Result<(String, Value), String> {
    let mut values = overrides::parse([text]).map_err(|_| "write KEY=VALUE")?;
    overrides::validate(&values).map_err(|error| error.to_string())?;
    values.pop_first().ok_or_else(|| "write KEY=VALUE".to_owned())
}

/// Collects labels from flags.
pub fn collect_labels(labels: Vec<(String, String)>) -> Labels {
    Labels(labels.into_iter().collect())
}
