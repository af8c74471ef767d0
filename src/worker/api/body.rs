//! Bodies of answers, read up to a limit: whoever answers, or stands in between, cannot fill this host's memory.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than this.
    #[error("an answer of more than {}", size(*.0))]
    TooLarge(usize),
    /// The connection broke.
    #[error(transparent)]
    Network(#[from] reqwest::Error),
}

/// Bytes as whoever set the limit has said them, more or less.
pub fn size(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Reads a whole body of at most so many bytes. Of a larger one no more than that is held, and the connection is dropped.
pub async fn read(mut response: Response, most: usize) -> Result<Bytes, BodyError> {
    if response.content_length().is_some_and(|length| length > most as u64) {
        return Err(BodyError::TooLarge(most));
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most {
            return Err(BodyError::TooLarge(most));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}
