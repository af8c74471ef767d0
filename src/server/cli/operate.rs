//! What the operator's commands have in common: how they start, how they end, and how they read flags and answers.

use std::process::ExitCode;

use app::domain::labels::Labels;
use app::protocol::overrides;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::client::Client;
use super::client::way::WayArgs;
use super::screen::{OutputArgs, Screen, with_own};
use crate::boot::exit::Exit;

/// Does something with a server.
pub fn main<W>(way: &WayArgs, output: &OutputArgs, work: W) -> ExitCode
where
    W: AsyncFnOnce(&Client, &mut Screen<'_>) -> Result<(), Exit>,
{
    on_screen(output, async |screen| work(&connect(way, screen)?, screen).await)
}

/// Does something that may need no server.
pub fn on_screen<W>(output: &OutputArgs, work: W) -> ExitCode
where
    W: AsyncFnOnce(&mut Screen<'_>) -> Result<(), Exit>,
{
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::failed(format!("the runtime could not be started: {error}")).report(),
    };
    let ended = with_own(output, |screen| runtime.block_on(work(screen)));
    // What still runs is somebody else's answer, which nobody waits for.
    runtime.shutdown_background();
    ended.map_or_else(|exit| exit.report(), |()| ExitCode::SUCCESS)
}

/// The client of the server that is meant.
pub fn connect(way: &WayArgs, screen: &mut Screen<'_>) -> Result<Client, Exit> {
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let way = way.find(&host, |name| std::env::var(name).ok())?;
    for warning in &way.warnings {
        screen.warn(warning)?;
    }
    Client::over(way)
}

/// One whose thread of its own sees Ctrl-C while a question waits for its answer.
fn runtime() -> std::io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    // A password is typed without an echo, which must not stay off.
    let before = tcgetattr(std::io::stdin()).ok();
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            if let Some(before) = before {
                let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &before);
            }
            std::process::exit(i32::from(Exit::interrupted().code()));
        }
    });
    Ok(runtime)
}

/// A part of an answer.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Exit> {
    T::deserialize(value).map_err(|error| {
        Exit::failed(format!("the answer is none that this program knows ({error}); is the server a newer one?"))
    })
}

/// One of these words; clap shows them, completes them and suggests the nearest.
pub fn words(words: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(words)
}

/// `KEY=VALUE`
pub fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A value of a configuration from a flag.
pub fn setting(text: &str) -> Result<(String, Value), String> {
    let mut values = overrides::parse([text]).map_err(|_| "write KEY=VALUE")?;
    overrides::check(&values).map_err(|unusable| unusable.to_string())?;
    values.pop_first().ok_or_else(|| "write KEY=VALUE".to_owned())
}

/// Labels from flags.
pub fn labels(pairs: Vec<(String, String)>) -> Labels {
    Labels(pairs.into_iter().collect())
}
