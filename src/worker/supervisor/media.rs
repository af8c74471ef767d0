//! Writes images, videos and sounds inside events to files; the event keeps their paths.

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::sample_name::{self, SampleName};
use crate::worker::artifacts::{EVENT_MEDIA_PREFIX, nofollow};
use crate::worker::progress::event_type;

const MEDIA_FIELDS: [&str; 3] = ["images", "videos", "audios"];
/// The fields of an entry that may hold the content.
const CONTENT_FIELDS: [&str; 5] = ["data", "content", "base64", "image", "src"];

/// The type of events with intermediate previews: each replaces the previous one.
const PREVIEW_EVENT: &str = "validation.image";

/// Python's and browsers' alphabets, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Replaces content in an event by paths below the output directory. `number` is the event's, `step` the trainer's, and
/// `files_left` is how many more files may be created.
///
/// # Errors
/// `InvalidData` if the trainer has created something else at the file's path, otherwise any I/O error.
pub fn extract_media(
    event: &mut Value,
    output: &Path,
    number: u64,
    step: Option<u64>,
    files_left: &mut usize,
) -> io::Result<()> {
    let is_preview = event_type(event) == Some(PREVIEW_EVENT);
    let sample = SampleName { step, prompt: sample_name::prompt_from_event(event) };
    for list in MEDIA_FIELDS {
        let Some(entries) = event.get_mut(list).and_then(Value::as_array_mut) else { continue };
        let count = entries.len();
        for (index, entry) in entries.iter_mut().enumerate() {
            let name = if is_preview {
                format!("preview_{list}_{index}")
            } else {
                format!("{number:06}_{list}_{index}{}", sample.suffix(entry, index, count))
            };
            let Some(content) = find_content(entry) else { continue };
            let Some(bytes) = content.as_str().and_then(decode_base64) else { continue };
            *files_left = files_left
                .checked_sub(1)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "too many files"))?;
            let path = format!("{EVENT_MEDIA_PREFIX}{name}.{}", guess_extension(&bytes));
            // Written to a temporary file first, because files in the directory are sent as they are.
            let temp_path = output.with_extension("media");
            std::fs::write(&temp_path, bytes)?;
            nofollow::move_into(&temp_path, output, &path).map_err(classify_error)?;
            *content = Value::from(path);
        }
    }
    Ok(())
}

/// A full disk is the host's fault; a link, or a file where a directory should be, is the trainer's.
fn classify_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

fn find_content(entry: &mut Value) -> Option<&mut Value> {
    if entry.is_string() {
        return Some(entry);
    }
    let key = CONTENT_FIELDS.into_iter().find(|key| entry.get(*key).is_some_and(Value::is_string))?;
    entry.get_mut(key)
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    // `data:image/png;base64,…`
    let text = text.strip_prefix("data:").and_then(|rest| rest.split_once(',')).map_or(text, |(_, content)| content);
    let bytes = BASE64.decode(text).ok()?;
    // Anything shorter is a path or a name.
    (bytes.len() >= 12).then_some(bytes)
}

/// By the first bytes, because the sender may not name the type.
fn guess_extension(bytes: &[u8]) -> &'static str {
    let has_magic = |offset: usize, magic: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    if has_magic(0, b"\x89PNG") {
        "png"
    } else if has_magic(0, b"\xff\xd8\xff") {
        "jpg"
    } else if has_magic(0, b"GIF8") {
        "gif"
    } else if has_magic(0, b"RIFF") && has_magic(8, b"WEBP") {
        "webp"
    } else if has_magic(0, b"RIFF") && has_magic(8, b"WAVE") {
        "wav"
    } else if has_magic(4, b"ftyp") {
        "mp4"
    } else if has_magic(0, b"\x1aE\xdf\xa3") {
        "webm"
    } else if has_magic(0, b"OggS") {
        "ogg"
    } else if has_magic(0, b"fLaC") {
        "flac"
    } else if has_magic(0, b"ID3") || has_magic(0, b"\xff\xfb") {
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
    fn media_becomes_files_and_text_stays() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let output = temp.path().join("output");
        std::fs::create_dir(&output)?;
        let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 20]].concat();
        let encoded = BASE64.encode(&png);
        let mut event = json!({
            "images": [encoded, {"data": format!("data:image/png;base64,{encoded}"), "prompt": "a cat"}, "a/path.png"],
            "videos": "none",
        });
        assert!(extract_media(&mut event.clone(), &output, 2, None, &mut 1).is_err(), "the event has two files");
        extract_media(&mut event, &output, 3, None, &mut 2)?;
        let expected = json!({
            "images": ["validation_images/event_000003_images_0.png",
                {"data": "validation_images/event_000003_images_1_a_cat.png", "prompt": "a cat"}, "a/path.png"],
            "videos": "none",
        });
        assert_eq!(event, expected);
        assert_eq!(std::fs::read(output.join("validation_images/event_000003_images_1_a_cat.png"))?, png);
        Ok(())
    }

    #[test]
    fn only_the_last_preview_stays() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let output = temp.path().join("output");
        std::fs::create_dir(&output)?;
        let picture = |step: u8| BASE64.encode([b"\x89PNG\r\n\x1a\n".as_slice(), &[step; 20]].concat());
        for step in 1..=6 {
            let mut event = json!({"type": "validation.image", "images": [picture(step)]});
            extract_media(&mut event, &output, step.into(), Some(step.into()), &mut 9)?;
        }
        extract_media(&mut json!({"type": "notification", "images": [picture(7)]}), &output, 7, None, &mut 9)?;
        let mut files: Vec<_> = std::fs::read_dir(output.join("validation_images"))?
            .map(|file| file.map(|file| file.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_, _>>()?;
        files.sort();
        assert_eq!(files, ["event_000007_images_0.png", "event_preview_images_0.png"]);
        let last = std::fs::read(output.join("validation_images/event_preview_images_0.png"))?;
        assert_eq!(last.last(), Some(&6));
        Ok(())
    }

    #[test]
    fn media_types_are_guessed_by_first_bytes() {
        for (bytes, expected) in [
            (b"RIFF....WEBPVP8 ".as_slice(), "webp"),
            (b"RIFF....WAVEfmt ", "wav"),
            (b"\0\0\0\x18ftypmp42", "mp4"),
            (b"\xff\xd8\xff\xe0abcdefgh", "jpg"),
            (b"something else", "bin"),
        ] {
            assert_eq!(guess_extension(bytes), expected);
        }
    }
}
