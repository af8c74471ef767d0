//! `simpletuner configs …`

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use app::domain::time::Timestamp;
use app::protocol::configs::{Bundle, ConfigDetail, ConfigView};
use app::ui::terminal;
use bytes::Bytes;
use clap::{Args, Subcommand};
use futures_util::stream;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reqwest::Body;
use serde_json::json;

use super::client::Client;
use super::operate::read;
use super::screen::{Form, Screen};
use super::table::{Cell, Paint, Table};
use crate::boot::exit::Exit;
use crate::boot::import;

/// From this size on, in bytes, it is shown how far an upload is.
const LARGE: usize = 256 << 10;
/// How much of an upload is handed on at once, in bytes.
const PIECE: usize = 64 << 10;

/// What can be done with configurations.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigsCommand {
    /// Add a configuration, or a new revision of one.
    Push(Push),
    /// List configurations.
    List,
    /// Show a configuration, or print one of its files.
    Show(Show),
    /// Remove a configuration; jobs that were submitted with it keep theirs.
    Delete(Which),
}

/// `simpletuner configs push`
#[derive(Debug, Clone, Args)]
pub struct Push {
    /// A directory with a config.json, or such a file alone.
    path: PathBuf,
    /// What it is called [default: as the directory].
    #[arg(long)]
    name: Option<String>,
}

/// `simpletuner configs show`
#[derive(Debug, Clone, Args)]
pub struct Show {
    #[command(flatten)]
    which: Which,
    /// Print this file, and nothing else.
    #[arg(long)]
    file: Option<String>,
}

/// Which configuration.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// Its name.
    #[arg(value_name = "CONFIG")]
    config: String,
}

/// Does it.
pub async fn run(command: ConfigsCommand, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    match command {
        ConfigsCommand::Push(push) => self::push(&push, client, screen).await,
        ConfigsCommand::List => list(client, screen).await,
        ConfigsCommand::Show(show) => self::show(show, client, screen).await,
        ConfigsCommand::Delete(Which { config }) => {
            screen.confirm(&format!("Delete the configuration {config}?"))?;
            let deleted = client.delete(&["configs", &config]).await?;
            screen.say(format!("{config} is gone."))?;
            screen.answer(&deleted, [config], |_| String::new())
        }
    }
}

async fn push(push: &Push, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let unreadable = |error: io::Error| Exit::config(format!("{} cannot be read: {error}", push.path.display()));
    let path = push.path.canonicalize().map_err(unreadable)?;
    let bundle = bundle(&path).map_err(unreadable)?;
    let directory = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
    let named = directory.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = push.name.clone().or(named).ok_or_else(|| Exit::usage("what is it called? Add --name".to_owned()))?;
    let body = serde_json::to_vec(&bundle).map_err(io::Error::other)?;
    let document = upload(&name, body, client, screen).await?;
    let config: ConfigView = read(&document)?;
    screen.say(format!("{} is at revision {}: {}.", config.name, config.revision, config.files.join(", ")))?;
    screen.answer(&document, [config.name], |_| String::new())
}

/// What is at a path: a directory's files, or one file, which is then the `config.json`.
fn bundle(path: &Path) -> io::Result<Bundle> {
    if path.is_dir() {
        let bundle = import::read(path)?;
        let whole = bundle.files.contains_key("config.json");
        return if whole { Ok(bundle) } else { Err(io::Error::other("there is no config.json in it")) };
    }
    Ok(Bundle { files: BTreeMap::from([("config.json".to_owned(), std::fs::read_to_string(path)?)]) })
}

async fn upload(name: &str, body: Vec<u8>, client: &Client, screen: &Screen<'_>) -> Result<serde_json::Value, Exit> {
    let length = body.len();
    let bar = if screen.draws && length >= LARGE { ProgressBar::new(length as u64) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}");
    bar.set_style(style.map_err(io::Error::other)?);
    bar.set_message(name.to_owned());
    let (whole, told) = (Bytes::from(body), bar.clone());
    let pieces = (0..length).step_by(PIECE).map(move |start| {
        let piece = whole.slice(start..(start + PIECE).min(length));
        told.inc(piece.len() as u64);
        Ok::<_, io::Error>(piece)
    });
    let answer = client.upload(&["configs", name], length, Body::wrap_stream(stream::iter(pieces))).await;
    bar.finish_and_clear();
    bar.set_draw_target(ProgressDrawTarget::hidden());
    Ok(answer?)
}

async fn list(client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let page = client.list(&["configs"], &json!({}), "configs", None).await?;
    let configs: Vec<ConfigView> = read(&page["configs"])?;
    if configs.is_empty() {
        screen.say("No configurations. Add one with `simpletuner configs push DIRECTORY`.")?;
    }
    let names = configs.iter().map(|config| config.name.clone());
    let now = screen.now();
    screen.answer(
        &page,
        names,
        |screen| {
            if configs.is_empty() { String::new() } else { screen.table(&table(&configs, now)) }
        },
    )
}

fn table(configs: &[ConfigView], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME!", "REVISION?", "FILES?", "WHAT~", "CHANGED!"]);
    for config in configs {
        let what: Vec<String> = config.summary.iter().map(|(key, value)| named(key, value)).collect();
        table.row(vec![
            Cell::from(&config.name),
            config.revision.to_string().into(),
            config.files.len().to_string().into(),
            what.join(" · ").into(),
            Cell::new(terminal::ago(config.updated_at, now), Paint::Dim),
        ]);
    }
    table
}

/// A value of a configuration, so that one sees which it is.
fn named(key: &str, value: &str) -> String {
    match key {
        "learning_rate" => format!("lr {value}"),
        "max_train_steps" => format!("{value} steps"),
        "train_batch_size" => format!("batch {value}"),
        _ => value.to_owned(),
    }
}

async fn show(show: Show, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let document = client.get(&["configs", &show.which.config]).await?;
    let ConfigDetail { config, bundle } = read(&document)?;
    if let Some(file) = &show.file {
        let text = bundle.files.get(file).ok_or_else(|| {
            Exit::failed(format!("{} has no file {file:?}; it has {}", config.name, config.files.join(", ")))
        })?;
        return if screen.form == Form::Json {
            screen.line(json!(text).to_string())
        } else {
            screen.bytes(text.as_bytes())
        };
    }
    screen.answer(&document, [config.name.clone()], |screen| {
        let mut facts = vec![
            ("name", Cell::from(&config.name)),
            ("revision", config.revision.to_string().into()),
            ("sha256", Cell::from(&config.sha256)),
            ("changed", terminal::moment(config.updated_at).into()),
        ];
        facts.extend(config.summary.iter().map(|(key, value)| (key.as_str(), Cell::from(value))));
        let mut files = Table::new(&["FILE!", "SIZE"]);
        for (name, text) in &bundle.files {
            files.row(vec![Cell::from(name), terminal::bytes(text.len() as u64).into()]);
        }
        format!("{}\n{}", screen.facts(&facts), screen.table(&files))
    })
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn values_say_which_they_are() {
        let rows = [
            ("learning_rate", "0.0003", "lr 0.0003"),
            ("max_train_steps", "120", "120 steps"),
            ("train_batch_size", "4", "batch 4"),
            ("model_family", "flux", "flux"),
        ];
        for (key, value, said) in rows {
            assert_eq!(named(key, value), said);
        }
    }
}
