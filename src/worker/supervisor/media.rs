//! Images, videos and sounds that come inside events become files; the event keeps their paths.

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::artifacts::{FROM_EVENTS, inside};

const LISTS: [&str; 3] = ["images", "videos", "audios"];
/// The fields of an entry that may hold the content.
const CONTENT: [&str; 5] = ["data", "content", "base64", "image", "src"];

/// Python's and browsers' spellings, with or without the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Replaces the content in an event by paths below the output directory. `most` is how many files may still be made.
///
/// # Errors
/// `InvalidData` if the trainer has put something in the way, else whatever the disk says.
pub fn extract(event: &mut Value, output: &Path, number: u64, most: &mut usize) -> io::Result<()> {
    for list in LISTS {
        let Some(entries) = event.get_mut(list).and_then(Value::as_array_mut) else { continue };
        for (place, entry) in entries.iter_mut().enumerate() {
            let Some(slot) = content(entry) else { continue };
            let Some(bytes) = slot.as_str().and_then(decode) else { continue };
            *most = most.checked_sub(1).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "too many files"))?;
            let path = format!("{FROM_EVENTS}{number:06}_{list}_{place}.{}", extension(&bytes));
            // Written aside first: what is in the directory is sent as it stands.
            let unfinished = output.with_extension("media");
            std::fs::write(&unfinished, bytes)?;
            inside::put(&unfinished, output, &path).map_err(in_the_way)?;
            *slot = Value::from(path);
        }
    }
    Ok(())
}

/// A full disk is the host's fault; a link, or a file where a directory should be, is the trainer's.
fn in_the_way(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

fn content(entry: &mut Value) -> Option<&mut Value> {
    if entry.is_string() {
        return Some(entry);
    }
    let key = CONTENT.into_iter().find(|key| entry.get(*key).is_some_and(Value::is_string))?;
    entry.get_mut(key)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    // `data:image/png;base64,…`
    let text = text.strip_prefix("data:").and_then(|rest| rest.split_once(',')).map_or(text, |(_, content)| content);
    let bytes = BASE64.decode(text).ok()?;
    // Anything shorter was a path or a name.
    (bytes.len() >= 12).then_some(bytes)
}

/// By the first bytes, as the sender's word for it may be missing.
fn extension(bytes: &[u8]) -> &'static str {
    let at = |offset: usize, magic: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    if at(0, b"\x89PNG") {
        "png"
    } else if at(0, b"\xff\xd8\xff") {
        "jpg"
    } else if at(0, b"GIF8") {
        "gif"
    } else if at(0, b"RIFF") && at(8, b"WEBP") {
        "webp"
    } else if at(0, b"RIFF") && at(8, b"WAVE") {
        "wav"
    } else if at(4, b"ftyp") {
        "mp4"
    } else if at(0, b"\x1aE\xdf\xa3") {
        "webm"
    } else if at(0, b"OggS") {
        "ogg"
    } else if at(0, b"fLaC") {
        "flac"
    } else if at(0, b"ID3") || at(0, b"\xff\xfb") {
        "mp3"
    } else {
        "bin"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn content_becomes_files_and_text_stays() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let output = temp.path().join("output");
        std::fs::create_dir(&output)?;
        let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 20]].concat();
        let encoded = BASE64.encode(&png);
        let mut event = json!({
            "images": [encoded, {"data": format!("data:image/png;base64,{encoded}"), "prompt": "a cat"}, "a/path.png"],
            "videos": "none",
        });
        assert!(extract(&mut event.clone(), &output, 2, &mut 1).is_err(), "it brings two files");
        extract(&mut event, &output, 3, &mut 2)?;
        let expected = json!({
            "images": ["validation_images/event_000003_images_0.png",
                {"data": "validation_images/event_000003_images_1.png", "prompt": "a cat"}, "a/path.png"],
            "videos": "none",
        });
        assert_eq!(event, expected);
        assert_eq!(std::fs::read(output.join("validation_images/event_000003_images_1.png"))?, png);
        Ok(())
    }

    #[test]
    fn kinds_by_their_first_bytes() {
        for (bytes, expected) in [
            (b"RIFF....WEBPVP8 ".as_slice(), "webp"),
            (b"RIFF....WAVEfmt ", "wav"),
            (b"\0\0\0\x18ftypmp42", "mp4"),
            (b"\xff\xd8\xff\xe0abcdefgh", "jpg"),
            (b"something else", "bin"),
        ] {
            assert_eq!(extension(bytes), expected);
        }
    }
}
