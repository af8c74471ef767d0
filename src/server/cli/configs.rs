//! `simpletuner configs …`

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use app::domain::time::Timestamp;
use app::protocol::configs::{ConfigBundle, ConfigDetail, ConfigView};
use app::ui::terminal;
use bytes::Bytes;
use clap::{Args, Subcommand};
use futures_util::stream;
use indicatif::ProgressDrawTarget;
use reqwest::Body;
use serde_json::json;

use super::client::Client;
use super::output::{Output, OutputFormat};
use super::progress::transfer_bar;
use super::run::parse_value;
use super::table::{CellStyle, Table, TableCell};
use crate::boot::config_import;
use crate::exit::ExitError;

/// Chunk size of an upload, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// Commands for configurations.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigsCommand {
    /// Upload a configuration, as a new one or a new revision.
    Push(PushConfigArgs),
    /// List configurations.
    List,
    /// Show a configuration, or print one of its files.
    Show(ShowConfigArgs),
    /// Delete a configuration; submitted jobs keep theirs.
    Delete(ConfigArg),
}

/// `simpletuner configs push`
#[derive(Debug, Clone, Args)]
pub struct PushConfigArgs {
    /// Directory with config.json, or a config.json file.
    path: PathBuf,
    /// Name [default: directory name].
    #[arg(long)]
    name: Option<String>,
}

/// `simpletuner configs show`
#[derive(Debug, Clone, Args)]
pub struct ShowConfigArgs {
    #[command(flatten)]
    target: ConfigArg,
    /// Print only this file.
    #[arg(long)]
    file: Option<String>,
}

/// A configuration by name.
#[derive(Debug, Clone, Args)]
pub struct ConfigArg {
    /// Configuration name.
    #[arg(value_name = "CONFIG")]
    config: String,
}

pub async fn run(command: ConfigsCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        ConfigsCommand::Push(push) => self::push_config(&push, client, output).await,
        ConfigsCommand::List => list_configs(client, output).await,
        ConfigsCommand::Show(show) => self::show_config(show, client, output).await,
        ConfigsCommand::Delete(ConfigArg { config }) => {
            output.confirm(&format!("Delete the configuration {config}?"))?;
            let document = client.delete(&["configs", &config]).await?;
            output.print_info(format!("Deleted {config}."))?;
            output.print_document(&document, [config], |_| String::new())
        }
    }
}

async fn push_config(push: &PushConfigArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let read_error = |error: io::Error| ExitError::config(format!("cannot read {}: {error}", push.path.display()));
    let path = push.path.canonicalize().map_err(read_error)?;
    let bundle = read_bundle(&path).map_err(read_error)?;
    let directory = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
    let directory_name = directory.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = push
        .name
        .clone()
        .or(directory_name)
        .ok_or_else(|| ExitError::usage("the name cannot be derived from the path; add --name".to_owned()))?;
    let body = serde_json::to_vec(&bundle).map_err(io::Error::other)?;
    let document = upload_bundle(&name, body, client, output).await?;
    let config: ConfigView = parse_value(&document)?;
    output.print_info(format!(
        "Stored {} as revision {}: {}.",
        config.name,
        config.revision,
        config.files.join(", ")
    ))?;
    output.print_document(&document, [config.name], |_| String::new())
}

/// Reads a directory's files, or one file as the `config.json`.
fn read_bundle(path: &Path) -> io::Result<ConfigBundle> {
    if path.is_dir() {
        let bundle = config_import::read_bundle(path)?;
        let is_complete = bundle.files.contains_key("config.json");
        return if is_complete { Ok(bundle) } else { Err(io::Error::other("it contains no config.json")) };
    }
    Ok(ConfigBundle { files: BTreeMap::from([("config.json".to_owned(), std::fs::read_to_string(path)?)]) })
}

async fn upload_bundle(
    name: &str,
    body: Vec<u8>,
    client: &Client,
    output: &Output<'_>,
) -> Result<serde_json::Value, ExitError> {
    let length = body.len();
    let bar = transfer_bar(output, name, length as u64, 0)?;
    let (body_bytes, progress) = (Bytes::from(body), bar.clone());
    let chunks = (0..length).step_by(CHUNK_BYTES).map(move |start| {
        let chunk = body_bytes.slice(start..(start + CHUNK_BYTES).min(length));
        progress.inc(chunk.len() as u64);
        Ok::<_, io::Error>(chunk)
    });
    let response = client.upload(&["configs", name], length, Body::wrap_stream(stream::iter(chunks))).await;
    bar.finish_and_clear();
    bar.set_draw_target(ProgressDrawTarget::hidden());
    Ok(response?)
}

async fn list_configs(client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let page = client.list_all(&["configs"], &json!({}), "configs", None).await?;
    let configs: Vec<ConfigView> = parse_value(&page["configs"])?;
    if configs.is_empty() {
        output.print_info("No configurations. Add one with `simpletuner configs push DIRECTORY`.")?;
    }
    let names = configs.iter().map(|config| config.name.clone());
    let now = output.now();
    output.print_document(&page, names, |screen| {
        if configs.is_empty() { String::new() } else { screen.format_table(&table(&configs, now)) }
    })
}

fn table(configs: &[ConfigView], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME!", "REVISION?", "FILES?", "SETTINGS~", "CHANGED!"]);
    for config in configs {
        let settings: Vec<String> = config.summary.iter().map(|(key, value)| describe_value(key, value)).collect();
        table.add_row(vec![
            TableCell::from(&config.name),
            config.revision.to_string().into(),
            config.files.len().to_string().into(),
            settings.join(" · ").into(),
            TableCell::new(terminal::ago(config.updated_at, now), CellStyle::Dim),
        ]);
    }
    table
}

/// Formats a configuration value, distinguishing its type.
fn describe_value(key: &str, value: &str) -> String {
    match key {
        "learning_rate" => format!("lr {value}"),
        "max_train_steps" => format!("{value} steps"),
        "train_batch_size" => format!("batch {value}"),
        _ => value.to_owned(),
    }
}

async fn show_config(show: ShowConfigArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let document = client.get(&["configs", &show.target.config]).await?;
    let ConfigDetail { config, bundle } = parse_value(&document)?;
    if let Some(file) = &show.file {
        let text = bundle.files.get(file).ok_or_else(|| {
            ExitError::failed(format!("{} has no file {file:?}; it has {}", config.name, config.files.join(", ")))
        })?;
        return if output.format == OutputFormat::Json {
            output.print_line(json!(text).to_string())
        } else {
            output.print_bytes(text.as_bytes())
        };
    }
    output.print_document(&document, [config.name.clone()], |screen| {
        let mut facts = vec![
            ("name", TableCell::from(&config.name)),
            ("revision", config.revision.to_string().into()),
            ("sha256", TableCell::from(&config.sha256)),
            ("changed", terminal::timestamp(config.updated_at).into()),
        ];
        facts.extend(config.summary.iter().map(|(key, value)| (key.as_str(), TableCell::from(value))));
        let mut files = Table::new(&["FILE!", "SIZE"]);
        for (name, text) in &bundle.files {
            files.add_row(vec![TableCell::from(name), terminal::bytes(text.len() as u64).into()]);
        }
        format!("{}\n{}", screen.format_facts(&facts), screen.format_table(&files))
    })
}

#[cfg(test)]
mod tests {
    use super::describe_value;

    #[test]
    fn values_show_their_type() {
        let rows = [
            ("learning_rate", "0.0003", "lr 0.0003"),
            ("max_train_steps", "120", "120 steps"),
            ("train_batch_size", "4", "batch 4"),
            ("model_family", "flux", "flux"),
        ];
        for (key, value, summary) in rows {
            assert_eq!(describe_value(key, value), summary);
        }
    }
}
