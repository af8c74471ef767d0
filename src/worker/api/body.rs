//! Reads response bodies up to a limit, so that neither the server nor a proxy can fill this host's memory.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Larger than this many bytes.
    #[error("a response of more than {}", format_size(*.0))]
    TooLarge(usize),
    /// The connection broke.
    #[error(transparent)]
    Network(#[from] reqwest::Error),
}

/// Formats bytes in KiB or MiB, rounded down.
pub fn format_size(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Reads a body of at most `max_bytes`. A larger one is not read to its end, and its connection is dropped.
pub async fn read_limited(mut response: Response, max_bytes: usize) -> Result<Bytes, BodyError> {
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(BodyError::TooLarge(max_bytes));
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Err(BodyError::TooLarge(max_bytes));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}
