//! A file that is downloaded over a bad connection: an interrupted download continues where it was.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::Duration;

use app::protocol::artifacts::ArtifactView;
use app::remote::root_cause;
use app::ui::terminal;
use bytes::Bytes;
use indicatif::ProgressBar;
use reqwest::{Method, Response, StatusCode, header};
use sha2::{Digest, Sha256};

use super::download::{partial_path, read_chunks, unwritable};
use super::strip_control;
use crate::cli::client::{ApiRequest, Client, ClientError};
use crate::cli::output::Output;
use crate::cli::progress::transfer_bar;
use crate::exit::ExitError;
use crate::tokens::hex;

/// A download without data for this long is aborted. A laptop may have slept, or a connection may have failed over.
const STALL_TIMEOUT: Duration = Duration::from_mins(10);
/// How often a download is tried without a byte more; with the delays between, about half a minute.
const MAX_TRIES: u32 = 7;

/// Why a try has not returned the whole file.
enum Failure {
    /// Another try may continue.
    Interrupted(String),
    /// Another try does not help.
    Final(ExitError),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let is_interrupted = error.is_transient() || matches!(error, ClientError::Unreachable(_));
        let exit = ExitError::from(error);
        if is_interrupted { Self::Interrupted(exit.message().to_owned()) } else { Self::Final(exit) }
    }
}

/// What has arrived of a file, beside its path.
struct PartialFile<'p> {
    path: &'p Path,
    file: File,
    digest: Sha256,
    length: u64,
}

impl<'p> PartialFile<'p> {
    /// Opens the part that an earlier download has left, or an empty one.
    fn open(path: &'p Path) -> Result<Self, ExitError> {
        let unwritable = |error: io::Error| unwritable(path, &error);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(unwritable)?;
        }
        let mut options = File::options();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(unwritable)?;
        // Some file systems have no locks.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(ExitError::temp_failure(format!("another download writes {}", path.display())));
        }
        let (mut digest, mut length) = (Sha256::new(), 0);
        let read = read_chunks(&mut file, |bytes| {
            digest.update(bytes);
            length += bytes.len() as u64;
        });
        read.map_err(unwritable)?;
        Ok(Self { path, file, digest, length })
    }

    fn clear(&mut self) -> Result<(), ExitError> {
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        cleared.map_err(|error| unwritable(self.path, &error))?;
        (self.digest, self.length) = (Sha256::new(), 0);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), ExitError> {
        self.file.write_all(bytes).map_err(|error| unwritable(self.path, &error))?;
        self.digest.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sha256(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

/// Downloads a file to a part beside its path, which is renamed once its SHA-256 is the announced one. A part that an
/// earlier download has left is continued. If the server has another version meanwhile, `file` describes that one.
pub async fn fetch_file(
    job: &str,
    file: &mut ArtifactView,
    path: &Path,
    client: &Client,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    let (name, partial_path) = (strip_control(&file.path), partial_path(path));
    let mut part = PartialFile::open(&partial_path)?;
    if part.length > file.size_bytes {
        part.clear()?;
    }
    let mut is_from_earlier = part.length > 0;
    if is_from_earlier {
        output.print_info(format!("Continuing {name} at {}.", progress(&part, file)))?;
    }
    let bar = transfer_bar(output, &name, file.size_bytes, part.length)?;
    let (mut tries, mut delay) = (1, client.retry_delay);
    loop {
        let before = part.length;
        match receive(job, file, &mut part, client, &bar).await {
            Ok(()) if part.sha256() == file.sha256 => break,
            // What was left is of another version, or was damaged.
            Ok(()) if is_from_earlier => {
                is_from_earlier = false;
                part.clear()?;
                bar.suspend(|| output.print_info(format!("{name} has changed; it begins again.")))?;
            }
            Ok(()) => {
                // A damaged part is of no use.
                let _ = fs::remove_file(&partial_path);
                return Err(ExitError::temp_failure(format!("{name} arrived changed: try again")));
            }
            Err(Failure::Interrupted(reason)) => {
                if part.length > before {
                    (tries, delay) = (1, client.retry_delay);
                }
                let state = format!("The download of {name} was interrupted at {} ({reason})", progress(&part, file));
                if tries == MAX_TRIES {
                    return Err(ExitError::temp_failure(format!("{state}: run this again to continue")));
                }
                bar.suspend(|| output.print_info(format!("{state}; it continues.")))?;
                tokio::time::sleep(delay).await;
                (tries, delay) = (tries + 1, delay * 2);
            }
            Err(Failure::Final(exit)) => {
                if part.length == 0 {
                    // It contains nothing to continue.
                    let _ = fs::remove_file(&partial_path);
                }
                return Err(exit);
            }
        }
    }
    bar.finish_and_clear();
    fs::rename(&partial_path, path).map_err(|error| unwritable(path, &error))
}

/// `12 GB of 30 GB`
fn progress(part: &PartialFile<'_>, file: &ArtifactView) -> String {
    format!("{} of {}", terminal::bytes(part.length), terminal::bytes(file.size_bytes))
}

/// Receives what is missing of a file: all of it, if the server has another version.
async fn receive(
    job: &str,
    file: &mut ArtifactView,
    part: &mut PartialFile<'_>,
    client: &Client,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    // A download may have been killed right before its end.
    if part.length > 0 && part.length == file.size_bytes {
        return Ok(());
    }
    let path = file.path.clone();
    let segments: Vec<&str> = ["queue", job, "artifacts"].into_iter().chain(path.split('/')).collect();
    let mut request = ApiRequest::new(Method::GET, &segments);
    if part.length > 0 {
        request = request.rest(part.length, format!("\"{}\"", file.sha256));
    }
    let mut response = client.download(request).await?;
    if !continues_at(&response, part.length) {
        part.clear().map_err(Failure::Final)?;
        note_version(&response, file)?;
        bar.set_length(file.size_bytes);
    }
    bar.set_position(part.length);
    while let Some(bytes) = next_chunk(&mut response).await.map_err(Failure::Interrupted)? {
        part.append(&bytes).map_err(Failure::Final)?;
        bar.set_position(part.length);
    }
    if part.length < file.size_bytes {
        return Err(Failure::Interrupted("the response ended early".to_owned()));
    }
    Ok(())
}

/// Returns whether a response has the bytes after those that have arrived.
fn continues_at(response: &Response, length: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let is_next = range.is_some_and(|range| range.starts_with(&format!("bytes {length}-")));
    length > 0 && response.status() == StatusCode::PARTIAL_CONTENT && is_next
}

/// Notes what the server sends, if it is not the version that it has listed.
fn note_version(response: &Response, file: &mut ArtifactView) -> Result<(), Failure> {
    if response.status() == StatusCode::PARTIAL_CONTENT {
        return Err(Failure::Interrupted("the response has other bytes".to_owned()));
    }
    let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let sha256 = tag.map(|tag| tag.trim_start_matches("W/").trim_matches('"')).filter(|tag| tag.len() == 64);
    if let (Some(sha256), Some(size)) = (sha256, response.content_length()) {
        (file.sha256, file.size_bytes) = (sha256.to_owned(), size);
    }
    Ok(())
}

/// Returns the next bytes of a body; at its end none. An error is the reason of an interruption.
pub async fn next_chunk(response: &mut Response) -> Result<Option<Bytes>, String> {
    match tokio::time::timeout(STALL_TIMEOUT, response.chunk()).await {
        Ok(chunk) => chunk.map_err(|error| root_cause(&error)),
        Err(_) => Err("no data for ten minutes".to_owned()),
    }
}
