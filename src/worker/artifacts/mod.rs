//! The files that a trainer makes: which there are, and what each is.

pub mod checkpoints;
pub mod copies;
pub mod inside;

use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use app::protocol::status::ArtifactKind;

use crate::files::Uploaded;

const MEDIA: &[&str] = &["png", "jpg", "jpeg", "webp", "gif", "mp4", "webm", "wav", "mp3", "flac", "ogg"];
/// Where the content of events goes, and how its names begin.
pub const FROM_EVENTS: &str = "validation_images/event_";
/// Deeper directories are not searched.
const DEEPEST: usize = 16;

/// One file below the output directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What it is on disk, and under which name it travels.
    pub file: Uploaded,
    /// What kind of file.
    pub kind: ArtifactKind,
}

/// What a file is, by its path below the output directory.
pub fn kind(path: &str) -> ArtifactKind {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    if is_of_a_checkpoint(path) {
        ArtifactKind::Checkpoint
    } else if path.starts_with("validation_images/") || MEDIA.contains(&extension.as_str()) {
        ArtifactKind::Sample
    } else if extension == "safetensors" && !path.contains('/') {
        ArtifactKind::Final
    } else {
        ArtifactKind::Other
    }
}

/// Whether a path is below a checkpoint's directory.
pub fn is_of_a_checkpoint(path: &str) -> bool {
    path.split_once('/').is_some_and(|(dir, _)| checkpoints::step(dir).is_some())
}

/// Every file below the output directory, by path. Symbolic links are not followed and not listed: they may lead anywhere.
///
/// # Errors
/// If a directory cannot be listed, or the output directory is a link; one that vanishes meanwhile is no error.
pub fn list(output: &Path) -> io::Result<Vec<Artifact>> {
    let mut found = Vec::new();
    if std::fs::symlink_metadata(output).is_ok_and(|meta| !meta.is_dir()) {
        return Err(io::Error::other("the trainer has put something else in its place, which is not followed"));
    }
    walk(output, "", 0, &mut found)?;
    found.sort_by(|a, b| a.file.path.cmp(&b.file.path));
    Ok(found)
}

fn walk(dir: &Path, prefix: &str, depth: usize, found: &mut Vec<Artifact>) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.contains('\\')) else {
            tracing::warn!("not sent, as its name is not plain text: {}", entry.path().display());
            continue;
        };
        // Of the entry itself, not of what a link points to.
        let Ok(meta) = entry.metadata() else { continue };
        let path = format!("{prefix}{name}");
        if meta.is_dir() && depth < DEEPEST {
            walk(&entry.path(), &format!("{path}/"), depth + 1, found)?;
        } else if meta.is_file() {
            let modified =
                meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            let modified_ms = i64::try_from(modified.as_millis()).unwrap_or_default();
            found.push(Artifact {
                kind: kind(&path),
                file: Uploaded { path, size: meta.len(), modified_ms, ..Uploaded::default() },
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let cases = [
            ("pytorch_lora_weights.safetensors", ArtifactKind::Final),
            ("checkpoint-100/model.safetensors", ArtifactKind::Checkpoint),
            ("checkpoint-final/model.bin", ArtifactKind::Other),
            ("validation_images/step_1.png", ArtifactKind::Sample),
            ("clips/a.MP4", ArtifactKind::Sample),
            ("transformer/model.safetensors", ArtifactKind::Other),
            ("training_state.json", ArtifactKind::Other),
        ];
        for (path, expected) in cases {
            assert_eq!(kind(path), expected, "{path}");
        }
    }

    #[test]
    fn no_link_is_listed() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        for path in ["checkpoint-10/b", "w.safetensors"] {
            let path = temp.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(temp.path()))?;
            std::fs::write(path, "x")?;
        }
        std::os::unix::fs::symlink("/etc", temp.path().join("etc"))?;
        std::os::unix::fs::symlink("/etc/passwd", temp.path().join("passwd"))?;
        let paths: Vec<_> = list(temp.path())?.into_iter().map(|artifact| artifact.file.path).collect();
        assert_eq!(paths, ["checkpoint-10/b", "w.safetensors"]);
        assert_eq!(list(&temp.path().join("missing"))?, []);
        assert!(list(&temp.path().join("etc")).is_err());
        Ok(())
    }
}
