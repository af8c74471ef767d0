//! Samples that came inside events and that the trainer has also written itself: only its own are sent.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use app::protocol::status::ArtifactKind;

use super::{Artifact, FROM_EVENTS, inside};

/// What comes inside an event is not larger, in bytes.
const LARGEST_COPY: u64 = 64 << 20;
/// How many files are compared with others at one look. A trainer can make any number of the same size.
const MOST_COMPARED: usize = 1_000;
/// A picture that the trainer writes in another format than it sends is written at about the same time, in ms.
const SAME_TIME_MS: u64 = 60_000;

/// Removes the copies. The trainer may put a link or a pipe in the place of one meanwhile; neither is followed.
///
/// # Errors
/// If a file cannot be removed.
pub fn drop_copies(output: &Path, files: &mut Vec<Artifact>) -> io::Result<()> {
    let samples = files.iter().filter(|artifact| artifact.kind == ArtifactKind::Sample).cloned();
    let (copies, own): (Vec<_>, Vec<_>) = samples.partition(|artifact| artifact.file.path.starts_with(FROM_EVENTS));
    let mut look = Look { output, own: &own, compared: 0, taken: BTreeSet::new() };
    for copy in copies.iter().filter(|copy| copy.file.size <= LARGEST_COPY) {
        if look.has_same_bytes(copy) || look.has_same_picture(copy) {
            inside::remove(output, &copy.file.path)?;
            files.retain(|artifact| artifact.file.path != copy.file.path);
        }
    }
    Ok(())
}

/// A look at the trainer's own samples.
struct Look<'a> {
    output: &'a Path,
    own: &'a [Artifact],
    compared: usize,
    /// Which of them stand for a copy that has other bytes.
    taken: BTreeSet<usize>,
}

impl Look<'_> {
    fn may_compare(&mut self) -> bool {
        self.compared += 1;
        self.compared <= MOST_COMPARED
    }

    fn has_same_bytes(&mut self, copy: &Artifact) -> bool {
        let own = self.own;
        own.iter().filter(|own| own.file.size == copy.file.size).any(|own| {
            self.may_compare() && same_bytes(self.output, &copy.file.path, &own.file.path).unwrap_or_default()
        })
    }

    /// Whether there is a picture in another format, as large and made at about the same time, that stands for no other copy.
    fn has_same_picture(&mut self, copy: &Artifact) -> bool {
        let own = self.own;
        let distance = |own: &Artifact| own.file.modified_ms.abs_diff(copy.file.modified_ms);
        let mut near: Vec<_> = own.iter().enumerate().filter(|(_, own)| distance(own) <= SAME_TIME_MS).collect();
        near.retain(|(place, own)| kind(own) != kind(copy) && !self.taken.contains(place));
        near.sort_by_key(|(_, own)| distance(own));
        let Some(size) = near.first().and_then(|_| size(self.output, copy)) else { return false };
        let found = near.into_iter().find(|(_, own)| self.may_compare() && self::size(self.output, own) == Some(size));
        found.is_some_and(|(place, _)| self.taken.insert(place))
    }
}

fn kind(artifact: &Artifact) -> Option<&str> {
    artifact.file.path.rsplit_once('.').map(|(_, extension)| extension)
}

/// Width and height of a picture.
fn size(output: &Path, picture: &Artifact) -> Option<(usize, usize)> {
    let file = inside::open(output, &picture.file.path).ok()?;
    let size = imagesize::reader_size(BufReader::new(file)).ok()?;
    Some((size.width, size.height))
}

/// Compares them piece by piece: a video need not fit into memory.
fn same_bytes(output: &Path, one: &str, other: &str) -> io::Result<bool> {
    let mut one = BufReader::new(inside::open(output, one)?);
    let mut other = BufReader::new(inside::open(output, other)?);
    loop {
        let (a, b) = (one.fill_buf()?, other.fill_buf()?);
        let length = a.len().min(b.len());
        if a[..length] != b[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(a.is_empty() && b.is_empty());
        }
        one.consume(length);
        other.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifacts::list;

    /// The head of a picture: enough to know its size.
    fn png(width: u32, height: u32, salt: u8) -> Vec<u8> {
        let head = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()].concat();
        [head.as_slice(), &[8, 2, 0, 0, 0, salt, salt, salt, salt]].concat()
    }

    fn gif(width: u16, height: u16) -> Vec<u8> {
        [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0; 20]].concat()
    }

    fn left(samples: &[(&str, &[u8])]) -> io::Result<Vec<String>> {
        let temp = tempfile::tempdir()?;
        std::fs::create_dir(temp.path().join("validation_images"))?;
        for (name, content) in samples {
            std::fs::write(temp.path().join("validation_images").join(name), content)?;
        }
        let mut files = list(temp.path())?;
        drop_copies(temp.path(), &mut files)?;
        let names = |files: &[Artifact]| -> Vec<String> {
            files.iter().filter_map(|file| Some(file.file.path.split_once('/')?.1.to_owned())).collect()
        };
        assert_eq!(names(&list(temp.path())?), names(&files));
        Ok(names(&files))
    }

    #[test]
    fn a_sample_is_sent_once() -> io::Result<()> {
        let left = left(&[("event_1.png", b"same"), ("event_2.png", b"only"), ("step_1.png", b"same")])?;
        assert_eq!(left, ["event_2.png", "step_1.png"]);
        Ok(())
    }

    #[test]
    fn a_picture_in_another_format_is_the_same() -> io::Result<()> {
        let (one, two, small) = (png(64, 64, 1), png(64, 64, 2), png(32, 64, 3));
        let own = gif(64, 64);
        let one_of_each =
            left(&[("event_1.png", &one), ("event_2.png", &two), ("event_3.png", &small), ("step_1.gif", &own)])?;
        assert_eq!(one_of_each.len(), 3, "one picture stands for one copy: {one_of_each:?}");
        assert!(one_of_each.contains(&"event_3.png".to_owned()), "another size is another picture");
        assert_eq!(left(&[("event_1.png", &one), ("step_1.png", &two)])?, ["event_1.png", "step_1.png"]);
        assert_eq!(left(&[("event_1.png", b"text"), ("step_1.gif", b"text!")])?, ["event_1.png", "step_1.gif"]);
        Ok(())
    }
}
