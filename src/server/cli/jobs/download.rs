//! `simpletuner jobs download`: weights and other files of a job, one by one or as an archive.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use app::protocol::artifacts::ArtifactView;
use app::ui::terminal;
use clap::Args;
use reqwest::{Method, Response};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::files::{fetch_page, select, weights_or_files};
use super::transfer::{fetch_file, next_chunk};
use super::{JobArg, strip_control};
use crate::cli::client::{ApiRequest, Client};
use crate::cli::output::Output;
use crate::cli::progress::transfer_bar;
use crate::exit::ExitError;
use crate::text::is_plain_path;
use crate::tokens::hex;

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
    /// Write one zip archive instead (- for stdout); unlike files, it begins again after an interruption.
    #[arg(long, value_name = "ARCHIVE", conflicts_with = "to")]
    zip: Option<PathBuf>,
}

pub async fn run(args: &DownloadArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match &args.zip {
        None => download_files(args, client, output).await,
        Some(path) if path.as_os_str() == "-" => {
            if output.width.is_some() {
                return Err(ExitError::usage("the archive would be written to the terminal: add > FILE".to_owned()));
            }
            receive_archive(request_archive(args, client).await?, &mut *output.out, &io_error).await.map(drop)
        }
        Some(path) => download_archive(args, path, client, output).await,
    }
}

/// Downloads files, and prints where they are.
async fn download_files(args: &DownloadArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let job = &args.target.job;
    let (_, page) = fetch_page(job, client).await?;
    let mut selected: Vec<ArtifactView> = select(&page, job, &args.files)?.into_iter().cloned().collect();
    let paths = selected.iter().map(|file| local_path(&args.to, &file.path)).collect::<Result<Vec<_>, _>>()?;
    let (complete, missing): (Vec<_>, Vec<_>) =
        selected.iter_mut().zip(&paths).partition(|(file, path)| is_complete(file, path));
    confirm_replacement(missing.iter().map(|(_, path)| path.as_path()), output)?;
    for (file, _) in complete {
        output.print_info(format!("{} is already there.", strip_control(&file.path)))?;
    }
    for (file, path) in missing {
        fetch_file(job, file, path, client, output).await?;
        let size = terminal::bytes(file.size_bytes);
        output.print_info(format!("Downloaded {} ({size}).", strip_control(&file.path)))?;
    }
    let written: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let lines: String = written.iter().map(|path| path.clone() + "\n").collect();
    output.print_document(&json!({"artifacts": selected}), written, |_| lines)
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
    let mut digest = Sha256::new();
    read_chunks(&mut File::open(path)?, |bytes| digest.update(bytes))?;
    Ok(hex(&digest.finalize()))
}

/// Reads the rest of a file in chunks.
pub fn read_chunks(file: &mut File, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            length => each(&buffer[..length]),
        }
    }
}

fn confirm_replacement<'p>(paths: impl Iterator<Item = &'p Path>, output: &mut Output<'_>) -> Result<(), ExitError> {
    let existing: Vec<&Path> = paths.filter(|path| path.exists()).collect();
    match existing[..] {
        [] => Ok(()),
        [path] => output.confirm(&format!("Replace {}?", path.display())),
        [first, ..] => output.confirm(&format!("Replace {} and {} more?", first.display(), existing.len() - 1)),
    }
}

/// Returns the path beside this one at which a file is written before it is complete.
pub fn partial_path(path: &Path) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

/// Downloads an archive, and prints where it is.
async fn download_archive(
    args: &DownloadArgs,
    path: &Path,
    client: &Client,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    confirm_replacement([path].into_iter(), output)?;
    let response = request_archive(args, client).await?;
    let bar = transfer_bar(output, &path.display().to_string(), response.content_length().unwrap_or(0), 0)?;
    let partial_path = partial_path(path);
    let unwritable = |error| unwritable(&partial_path, &error);
    let mut file = File::create(&partial_path).map_err(unwritable)?;
    let received = receive_archive(response, &mut bar.wrap_write(&mut file), &unwritable).await;
    bar.finish_and_clear();
    let renamed = received.and_then(|length| fs::rename(&partial_path, path).map(|()| length).map_err(unwritable));
    let length = renamed.inspect_err(|_| drop(fs::remove_file(&partial_path)))?;
    let path = path.display().to_string();
    output.print_info(format!("Downloaded {path} ({}).", terminal::bytes(length)))?;
    output.print_document(&json!({"path": path, "size_bytes": length}), [path.clone()], |_| format!("{path}\n"))
}

async fn request_archive(args: &DownloadArgs, client: &Client) -> Result<Response, ExitError> {
    let segments = ["queue", &args.target.job, "artifacts.zip"];
    let request = ApiRequest::new(Method::GET, &segments).query(&weights_or_files(&args.files));
    Ok(client.download(request).await?)
}

/// Writes the archive, and returns its length.
async fn receive_archive(
    mut response: Response,
    to: &mut (dyn Write + '_),
    unwritable: &dyn Fn(io::Error) -> ExitError,
) -> Result<u64, ExitError> {
    let mut length = 0;
    let interrupted = |reason| {
        ExitError::temp_failure(format!(
            "the download was interrupted ({reason}), and an archive cannot be continued: try again, or download the \
             files without --zip"
        ))
    };
    while let Some(bytes) = next_chunk(&mut response).await.map_err(interrupted)? {
        to.write_all(&bytes).map_err(unwritable)?;
        length += bytes.len() as u64;
    }
    to.flush().map_err(unwritable)?;
    Ok(length)
}

fn io_error(error: io::Error) -> ExitError {
    error.into()
}

pub fn unwritable(path: &Path, error: &io::Error) -> ExitError {
    ExitError::config(format!("cannot write {}: {error}; choose another place", path.display()))
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
