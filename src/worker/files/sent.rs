//! What the orchestrator has of an attempt's files: `uploaded.jsonl`, to which a line is added for each that was sent, as
//! there may be ten thousand. The last line of a path counts.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

use super::{AttemptDir, Uploaded};

const FILE: &str = "uploaded.jsonl";

/// Files by path. A copy costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<HashMap<String, Uploaded>>);

impl Sent {
    /// Those that are written down; what cannot be read is sent again.
    pub fn read(dir: &AttemptDir) -> Self {
        let text = match std::fs::read(dir.join(FILE)) {
            Ok(text) => text,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!("{}: what was sent cannot be read: {error}", dir.path().display());
                }
                return Self::default();
            }
        };
        // Half a line is of somebody who was killed, or of a full disk.
        let lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Self(Arc::new(lines.map(|file: Uploaded| (file.path.clone(), file)).collect()))
    }

    /// What was sent of this path, last.
    pub fn get(&self, path: &str) -> Option<&Uploaded> {
        self.0.get(path)
    }

    /// Whether a file on disk is one that was sent, with or without its digest.
    pub fn knows(&self, file: &Uploaded) -> bool {
        self.get(&file.path).is_some_and(|known| known.is(file))
    }

    /// Whether the orchestrator has a file as it is on disk.
    pub fn has(&self, file: &Uploaded) -> bool {
        self.knows(file) && self.get(&file.path).is_some_and(|known| !known.sha256.is_empty())
    }

    /// Takes note of one; without a digest the orchestrator has it no more.
    pub fn note(&mut self, file: Uploaded) {
        Arc::make_mut(&mut self.0).insert(file.path.clone(), file);
    }
}

impl AttemptDir {
    /// Writes down what was sent; the kernel chooses when the disk gets it.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn add_sent(&self, files: &[Uploaded]) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(self.join(FILE))?;
        let mut text = Vec::new();
        if !ends_a_line(&file)? {
            text.push(b'\n');
        }
        for sent in files {
            serde_json::to_writer(&mut text, sent)?;
            text.push(b'\n');
        }
        file.write_all(&text)
    }
}

/// Nothing was added after half a line.
fn ends_a_line(file: &File) -> io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64, sha256: &str) -> Uploaded {
        Uploaded { path: path.to_owned(), size, modified_ms: 7, sha256: sha256.to_owned() }
    }

    #[test]
    fn the_last_line_of_a_path_counts_and_half_a_line_does_not() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        assert!(Sent::read(&dir).get("a").is_none());
        dir.add_sent(&[file("a", 1, "aa"), file("b", 2, "bb")])?;
        dir.add_sent(&[file("a", 3, "cc"), file("b", 0, "")])?;
        // Somebody is killed in the middle of it.
        OpenOptions::new().append(true).open(dir.join(FILE))?.write_all(b"{\"path\": \"c\", \"si")?;
        dir.add_sent(&[file("d", 4, "dd")])?;
        let sent = Sent::read(&dir);
        let has = |path, size| sent.has(&file(path, size, ""));
        assert_eq!(
            [has("a", 1), has("a", 3), has("b", 2), has("c", 0), has("d", 4)],
            [false, true, false, false, true]
        );
        assert_eq!(sent.get("a").map(|known| known.sha256.as_str()), Some("cc"));
        assert!(sent.knows(&Uploaded { modified_ms: 7, ..file("b", 0, "") }));
        Ok(())
    }
}
