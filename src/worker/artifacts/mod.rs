//! Finds and classifies the files that a trainer writes.

pub mod checkpoints;
pub mod duplicates;
pub mod nofollow;

use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use app::protocol::artifacts::checkpoints::is_checkpoint_path;
use app::protocol::status::ArtifactKind;

use crate::worker::files::UploadedFile;

const MEDIA_EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "webp", "gif", "mp4", "webm", "wav", "mp3", "flac", "ogg"];
/// Where media from events are stored, and the prefix of their names.
pub const EVENT_MEDIA_PREFIX: &str = "validation_images/event_";
/// Maximum depth of directories that are searched.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its state on disk, and the name under which it is uploaded.
    pub file: UploadedFile,
    pub kind: ArtifactKind,
}

/// The kind of a file by its path below the output directory.
pub fn classify(path: &str) -> ArtifactKind {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    if is_checkpoint_path(path) {
        ArtifactKind::Checkpoint
    } else if path.starts_with("validation_images/") || MEDIA_EXTENSIONS.contains(&extension.as_str()) {
        ArtifactKind::Sample
    } else if extension == "safetensors" && !path.contains('/') {
        ArtifactKind::Final
    } else {
        ArtifactKind::Other
    }
}

/// All files below the output directory, sorted by path. Symbolic links are neither followed nor listed: they may lead
/// anywhere.
///
/// # Errors
/// If a directory cannot be listed, or the output directory is a link. A directory that vanishes meanwhile is no error.
pub fn list(output: &Path) -> io::Result<Vec<Artifact>> {
    let mut found = Vec::new();
    if std::fs::symlink_metadata(output).is_ok_and(|meta| !meta.is_dir()) {
        return Err(io::Error::other("the trainer has replaced it by something else, which is not followed"));
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
            tracing::warn!("not uploaded, because its name is not valid text: {}", entry.path().display());
            continue;
        };
        // Metadata of the entry itself, not of a link's target.
        let Ok(meta) = entry.metadata() else { continue };
        let path = format!("{prefix}{name}");
        if meta.is_dir() && depth < MAX_DEPTH {
            walk(&entry.path(), &format!("{path}/"), depth + 1, found)?;
        } else if meta.is_file() {
            let modified =
                meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            let modified_ms = i64::try_from(modified.as_millis()).unwrap_or_default();
            found.push(Artifact {
                kind: classify(&path),
                file: UploadedFile { path, size: meta.len(), modified_ms, ..UploadedFile::default() },
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_artifact_kinds() {
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
            assert_eq!(classify(path), expected, "{path}");
        }
    }

    #[test]
    fn links_are_not_listed() -> io::Result<()> {
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
