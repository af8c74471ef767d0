//! Bodies of answers, read up to a limit: whoever answers, or stands in between, cannot fill this host's memory.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

/// The largest answer in JSON, in bytes.
pub const LARGEST_ANSWER: usize = 8 << 20;
/// The largest bundle: 8 MiB of text as JSON, where a character can take six.
pub const LARGEST_BUNDLE: usize = 64 << 20;

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than this.
    #[error("an answer of more than {} MiB", .0 >> 20)]
    TooLarge(usize),
    /// The connection broke.
    #[error(transparent)]
    Network(#[from] reqwest::Error),
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
