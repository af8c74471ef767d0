//! `simpletuner jobs files`: the files that a job has uploaded.

use app::protocol::artifacts::{ArtifactView, ArtifactsPage, ArtifactsZipQuery, is_at_or_below};
use app::protocol::status::ArtifactKind;
use app::ui::terminal;
use serde_json::Value;

use super::JobArg;
use crate::cli::client::Client;
use crate::cli::output::Output;
use crate::cli::run::parse_value;
use crate::cli::table::{Table, TableCell};
use crate::exit::ExitError;

/// Lists the files of a job.
pub async fn list(target: &JobArg, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let (document, page) = fetch_page(&target.job, client).await?;
    if page.artifacts.is_empty() {
        output.print_info("No files.")?;
    }
    let paths = page.artifacts.iter().map(|file| file.path.clone());
    output.print_document(&document, paths, |screen| {
        if page.artifacts.is_empty() { String::new() } else { screen.format_table(&table(&page.artifacts)) }
    })
}

pub async fn fetch_page(job: &str, client: &Client) -> Result<(Value, ArtifactsPage), ExitError> {
    let document = client.get(&["queue", job, "artifacts"]).await?;
    let page = parse_value(&document)?;
    Ok((document, page))
}

fn table(files: &[ArtifactView]) -> Table {
    let mut table = Table::new(&["FILE!", "KIND", "SIZE!", "ATTEMPT?"]);
    for file in files {
        table.add_row(vec![
            TableCell::from(&file.path),
            file.kind.as_str().into(),
            terminal::bytes(file.size_bytes).into(),
            file.attempt.to_string().into(),
        ]);
    }
    table
}

/// Returns what selects the files of these names; without names, the weights.
pub fn weights_or_files(names: &[String]) -> ArtifactsZipQuery {
    ArtifactsZipQuery { kind: names.is_empty().then_some(ArtifactKind::Final), path: names.to_vec() }
}

/// Returns the files of these names, and those below directories of these names; without names, the weights.
pub fn select<'p>(page: &'p ArtifactsPage, job: &str, names: &[String]) -> Result<Vec<&'p ArtifactView>, ExitError> {
    let missing = names.iter().find(|name| !page.artifacts.iter().any(|file| is_at_or_below(&file.path, name)));
    let query = weights_or_files(names);
    let selected: Vec<_> = page.artifacts.iter().filter(|file| query.matches(&file.path, file.kind)).collect();
    let missing_files = match missing {
        Some(name) => format!("no file {name:?}"),
        None if selected.is_empty() => "no weights".to_owned(),
        None => return Ok(selected),
    };
    Err(ExitError::failed(format!("{job} has {missing_files}; `simpletuner jobs files {job}` shows what it has")))
}
