//! The files of an attempt that the orchestrator has: `uploaded.jsonl`. A line is appended for each upload, because
//! there may be ten thousand. The last line of a path counts.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

use super::{AttemptDir, UploadedFile};

const FILE: &str = "uploaded.jsonl";

/// Files by path. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct UploadedFiles(Arc<HashMap<String, UploadedFile>>);

impl UploadedFiles {
    /// Reads the recorded files; those of unreadable lines are uploaded again.
    pub fn load(dir: &AttemptDir) -> Self {
        let text = match std::fs::read(dir.join(FILE)) {
            Ok(text) => text,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!("{}: cannot read its uploaded files: {error}", dir.path().display());
                }
                return Self::default();
            }
        };
        // An incomplete line is left by a killed process or a full disk.
        let lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Self(Arc::new(lines.map(|file: UploadedFile| (file.path.clone(), file)).collect()))
    }

    /// The last upload of this path.
    pub fn get(&self, path: &str) -> Option<&UploadedFile> {
        self.0.get(path)
    }

    /// Whether this file was uploaded, compared with or without its digest.
    pub fn contains(&self, file: &UploadedFile) -> bool {
        self.get(&file.path).is_some_and(|known| known.matches(file))
    }

    /// Whether the orchestrator has the file as it is on disk.
    pub fn is_up_to_date(&self, file: &UploadedFile) -> bool {
        self.contains(file) && self.get(&file.path).is_some_and(|known| !known.sha256.is_empty())
    }

    /// Records a file; without a digest the orchestrator no longer has it.
    pub fn record(&mut self, file: UploadedFile) {
        Arc::make_mut(&mut self.0).insert(file.path.clone(), file);
    }
}

impl AttemptDir {
    /// Appends uploaded files without a sync.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn append_uploaded(&self, files: &[UploadedFile]) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(self.join(FILE))?;
        let mut text = Vec::new();
        if !ends_with_newline(&file)? {
            text.push(b'\n');
        }
        for uploaded in files {
            serde_json::to_writer(&mut text, uploaded)?;
            text.push(b'\n');
        }
        file.write_all(&text)
    }
}

/// False after an incomplete line.
fn ends_with_newline(file: &File) -> io::Result<bool> {
    let Some(last_offset) = file.metadata()?.len().checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last_offset)?;
    Ok(byte == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64, sha256: &str) -> UploadedFile {
        UploadedFile { path: path.to_owned(), size, modified_ms: 7, sha256: sha256.to_owned() }
    }

    #[test]
    fn last_complete_line_of_a_path_counts() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        assert!(UploadedFiles::load(&dir).get("a").is_none());
        dir.append_uploaded(&[file("a", 1, "aa"), file("b", 2, "bb")])?;
        dir.append_uploaded(&[file("a", 3, "cc"), file("b", 0, "")])?;
        // A writer is killed in the middle of a line.
        OpenOptions::new().append(true).open(dir.join(FILE))?.write_all(b"{\"path\": \"c\", \"si")?;
        dir.append_uploaded(&[file("d", 4, "dd")])?;
        let sent = UploadedFiles::load(&dir);
        let has = |path, size| sent.is_up_to_date(&file(path, size, ""));
        assert_eq!(
            [has("a", 1), has("a", 3), has("b", 2), has("c", 0), has("d", 4)],
            [false, true, false, false, true]
        );
        assert_eq!(sent.get("a").map(|known| known.sha256.as_str()), Some("cc"));
        assert!(sent.contains(&UploadedFile { modified_ms: 7, ..file("b", 0, "") }));
        Ok(())
    }
}
