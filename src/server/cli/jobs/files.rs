//! `simpletuner jobs files` and `jobs download`: the files that a job has uploaded.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use app::protocol::artifacts::{ArtifactView, ArtifactsPage};
use app::protocol::status::ArtifactKind;
use app::remote::root_cause;
use app::ui::terminal;
use clap::Args;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{JobArg, strip_control};
use crate::cli::client::{ApiRequest, Client};
use crate::cli::output::Output;
use crate::cli::run::parse_value;
use crate::cli::table::{Table, TableCell};
use crate::exit::ExitError;
use crate::text::is_plain_path;
use crate::tokens::hex;

/// A download without data for this long is aborted. A laptop may have slept, or a connection may have failed over.
const STALL_TIMEOUT: Duration = Duration::from_mins(10);

/// `simpletuner jobs download`
#[derive(Debug, Clone, Args)]
pub struct DownloadArgs {
    #[command(flatten)]
    target: JobArg,
    /// Files and directories by path, as `jobs files` lists them [default: the trained weights].
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Directory to write to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
}

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

/// Downloads files of a job, and prints where they are.
pub async fn download(args: &DownloadArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let job = &args.target.job;
    let (_, page) = fetch_page(job, client).await?;
    let selected = select(&page, job, &args.files)?;
    let paths = selected.iter().map(|file| local_path(&args.to, &file.path)).collect::<Result<Vec<_>, _>>()?;
    let (complete, missing): (Vec<_>, Vec<_>) =
        selected.iter().copied().zip(&paths).partition(|(file, path)| is_complete(file, path));
    confirm_replacement(&missing, output)?;
    for (file, _) in complete {
        output.print_info(format!("{} is already there.", strip_control(&file.path)))?;
    }
    for (file, path) in missing {
        fetch_file(job, file, path, client).await?;
        let size = terminal::bytes(file.size_bytes);
        output.print_info(format!("Downloaded {} ({size}).", strip_control(&file.path)))?;
    }
    let written: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let lines: String = written.iter().map(|path| path.clone() + "\n").collect();
    output.print_document(&json!({"artifacts": selected}), written, |_| lines)
}

async fn fetch_page(job: &str, client: &Client) -> Result<(Value, ArtifactsPage), ExitError> {
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

/// Returns the files of these names, and those below directories of these names; without names, the weights.
fn select<'p>(page: &'p ArtifactsPage, job: &str, names: &[String]) -> Result<Vec<&'p ArtifactView>, ExitError> {
    let is_below = |file: &ArtifactView, name: &str| {
        let rest = file.path.strip_prefix(name.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let missing = names.iter().find(|name| !page.artifacts.iter().any(|file| is_below(file, name)));
    let selected: Vec<&ArtifactView> = if names.is_empty() {
        page.artifacts.iter().filter(|file| file.kind == ArtifactKind::Final).collect()
    } else {
        page.artifacts.iter().filter(|file| names.iter().any(|name| is_below(file, name))).collect()
    };
    let missing_files = match missing {
        Some(name) => format!("no file {name:?}"),
        None if selected.is_empty() => "no weights".to_owned(),
        None => return Ok(selected),
    };
    Err(ExitError::failed(format!("{job} has {missing_files}; `simpletuner jobs files {job}` shows what it has")))
}

/// Returns where a file is written. Trainers choose paths, and none may leave the directory.
fn local_path(to: &Path, path: &str) -> Result<PathBuf, ExitError> {
    if is_plain_path(path) {
        Ok(to.join(path))
    } else {
        Err(ExitError::failed(format!("the path {path:?} leaves the directory")))
    }
}

/// Returns whether an earlier download has written this file, and it has not changed since.
fn is_complete(file: &ArtifactView, path: &Path) -> bool {
    let has_size = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == file.size_bytes);
    has_size && hash_file(path).is_ok_and(|sha256| sha256 == file.sha256)
}

/// Returns the SHA-256 of a file in hex.
fn hash_file(path: &Path) -> io::Result<String> {
    let (mut file, mut digest, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            length => digest.update(&buffer[..length]),
        }
    }
}

fn confirm_replacement(files: &[(&ArtifactView, &PathBuf)], output: &mut Output<'_>) -> Result<(), ExitError> {
    let existing: Vec<&PathBuf> = files.iter().map(|(_, path)| *path).filter(|path| path.exists()).collect();
    match existing[..] {
        [] => Ok(()),
        [path] => output.confirm(&format!("Replace {}?", path.display())),
        [first, ..] => output.confirm(&format!("Replace {} and {} more?", first.display(), existing.len() - 1)),
    }
}

/// Downloads to a temporary file beside the path, which is renamed if its SHA-256 is the announced one. It replaces the
/// temporary file of a download that was killed.
async fn fetch_file(job: &str, file: &ArtifactView, path: &Path, client: &Client) -> Result<(), ExitError> {
    let mut segments = vec!["queue", job, "artifacts"];
    segments.extend(file.path.split('/'));
    let response = client.download(ApiRequest::new(Method::GET, &segments)).await?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let partial_path = path.with_file_name(name);
    let result = match receive(response, &partial_path).await {
        Ok(sha256) if sha256 == file.sha256 => {
            fs::rename(&partial_path, path).map_err(|error| unwritable(path, &error))
        }
        Ok(_) => Err(ExitError::temp_failure(format!("{} arrived changed: try again", strip_control(&file.path)))),
        Err(exit) => Err(exit),
    };
    if result.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&partial_path);
    }
    result
}

/// Writes the body of a response to a file; returns its SHA-256 in hex.
async fn receive(mut response: Response, path: &Path) -> Result<String, ExitError> {
    let mut file = File::create(path).map_err(|error| unwritable(path, &error))?;
    let mut digest = Sha256::new();
    loop {
        let bytes = match tokio::time::timeout(STALL_TIMEOUT, response.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => return Ok(hex(&digest.finalize())),
            Ok(Err(error)) => return Err(interrupted(&root_cause(&error))),
            Err(_) => return Err(interrupted("no data for ten minutes")),
        };
        digest.update(&bytes);
        file.write_all(&bytes).map_err(|error| unwritable(path, &error))?;
    }
}

fn interrupted(reason: &str) -> ExitError {
    ExitError::temp_failure(format!("the download was interrupted ({reason}): try again"))
}

fn unwritable(path: &Path, error: &io::Error) -> ExitError {
    ExitError::config(format!("cannot write {}: {error}; choose another directory with --to", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_the_directory() {
        let to = Path::new("out");
        assert_eq!(local_path(to, "a/b.bin").expect("plain"), Path::new("out/a/b.bin"));
        for path in ["", "/etc/passwd", "../b.bin", "a/../../b.bin"] {
            assert!(local_path(to, path).is_err(), "{path}");
        }
    }
}
