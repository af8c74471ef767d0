//! Removes samples sent inside events that the trainer has also written itself: only the trainer's own files are
//! uploaded.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use app::protocol::status::ArtifactKind;

use super::{Artifact, EVENT_MEDIA_PREFIX, nofollow};

/// Maximum size of a sample inside an event, in bytes.
const MAX_COPY_BYTES: u64 = 64 << 20;
/// Maximum files compared per scan. A trainer can create any number of files of the same size.
const MAX_COMPARISONS: usize = 1_000;
/// A picture that the trainer writes in another format than it sends is written within this time, in ms.
const SAME_IMAGE_WINDOW_MS: u64 = 60_000;

/// Removes the duplicates. The trainer may replace a file by a link or a pipe meanwhile; neither is followed.
///
/// # Errors
/// If a file cannot be removed.
pub fn remove_duplicates(output: &Path, files: &mut Vec<Artifact>) -> io::Result<()> {
    let samples = files.iter().filter(|artifact| artifact.kind == ArtifactKind::Sample).cloned();
    let (copies, trainer_samples): (Vec<_>, Vec<_>) =
        samples.partition(|artifact| artifact.file.path.starts_with(EVENT_MEDIA_PREFIX));
    let mut matcher =
        SampleMatcher { output, trainer_samples: &trainer_samples, compared: 0, matched: BTreeSet::new() };
    for copy in copies.iter().filter(|copy| copy.file.size <= MAX_COPY_BYTES) {
        if matcher.has_same_bytes(copy) || matcher.has_same_picture(copy) {
            nofollow::remove(output, &copy.file.path)?;
            files.retain(|artifact| artifact.file.path != copy.file.path);
        }
    }
    Ok(())
}

/// Finds the trainer's own samples that equal a file from an event.
struct SampleMatcher<'a> {
    output: &'a Path,
    trainer_samples: &'a [Artifact],
    compared: usize,
    /// Samples already matched with a file that has other bytes.
    matched: BTreeSet<usize>,
}

impl SampleMatcher<'_> {
    fn can_compare(&mut self) -> bool {
        self.compared += 1;
        self.compared <= MAX_COMPARISONS
    }

    fn has_same_bytes(&mut self, copy: &Artifact) -> bool {
        let samples = self.trainer_samples;
        samples.iter().filter(|sample| sample.file.size == copy.file.size).any(|sample| {
            self.can_compare() && same_bytes(self.output, &copy.file.path, &sample.file.path).unwrap_or_default()
        })
    }

    /// Whether an unmatched picture in another format has the same dimensions and about the same time.
    fn has_same_picture(&mut self, copy: &Artifact) -> bool {
        let samples = self.trainer_samples;
        let distance = |sample: &Artifact| sample.file.modified_ms.abs_diff(copy.file.modified_ms);
        let mut candidates: Vec<_> =
            samples.iter().enumerate().filter(|(_, sample)| distance(sample) <= SAME_IMAGE_WINDOW_MS).collect();
        candidates
            .retain(|(index, sample)| file_extension(sample) != file_extension(copy) && !self.matched.contains(index));
        candidates.sort_by_key(|(_, sample)| distance(sample));
        let Some(size) = candidates.first().and_then(|_| image_dimensions(self.output, copy)) else { return false };
        let found = candidates
            .into_iter()
            .find(|(_, sample)| self.can_compare() && image_dimensions(self.output, sample) == Some(size));
        found.is_some_and(|(index, _)| self.matched.insert(index))
    }
}

fn file_extension(artifact: &Artifact) -> Option<&str> {
    artifact.file.path.rsplit_once('.').map(|(_, extension)| extension)
}

/// Width and height.
fn image_dimensions(output: &Path, picture: &Artifact) -> Option<(usize, usize)> {
    let file = nofollow::open(output, &picture.file.path).ok()?;
    let size = imagesize::reader_size(BufReader::new(file)).ok()?;
    Some((size.width, size.height))
}

/// Compares in chunks: a video need not fit into memory.
fn same_bytes(output: &Path, first: &str, second: &str) -> io::Result<bool> {
    let mut first = BufReader::new(nofollow::open(output, first)?);
    let mut second = BufReader::new(nofollow::open(output, second)?);
    loop {
        let (a, b) = (first.fill_buf()?, second.fill_buf()?);
        let length = a.len().min(b.len());
        if a[..length] != b[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(a.is_empty() && b.is_empty());
        }
        first.consume(length);
        second.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::artifacts::list;

    /// The header of a picture, which contains its size.
    fn png(width: u32, height: u32, salt: u8) -> Vec<u8> {
        let head = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()].concat();
        [head.as_slice(), &[8, 2, 0, 0, 0, salt, salt, salt, salt]].concat()
    }

    fn gif(width: u16, height: u16) -> Vec<u8> {
        [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0; 20]].concat()
    }

    fn jpeg(width: u16, height: u16) -> Vec<u8> {
        let head = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08".as_slice();
        [head, &height.to_be_bytes(), &width.to_be_bytes(), &[0; 20]].concat()
    }

    fn webp(width: u16, height: u16) -> Vec<u8> {
        let head = b"RIFF\x2a\0\0\0WEBPVP8 \x1e\0\0\0\0\0\0\x9d\x01\x2a".as_slice();
        [head, &width.to_le_bytes(), &height.to_le_bytes(), &[0; 20]].concat()
    }

    fn remaining_samples(samples: &[(&str, &[u8])]) -> io::Result<Vec<String>> {
        let temp = tempfile::tempdir()?;
        std::fs::create_dir(temp.path().join("validation_images"))?;
        for (name, content) in samples {
            std::fs::write(temp.path().join("validation_images").join(name), content)?;
        }
        let mut files = list(temp.path())?;
        remove_duplicates(temp.path(), &mut files)?;
        let names = |files: &[Artifact]| -> Vec<String> {
            files.iter().filter_map(|file| Some(file.file.path.split_once('/')?.1.to_owned())).collect()
        };
        assert_eq!(names(&list(temp.path())?), names(&files));
        Ok(names(&files))
    }

    #[test]
    fn sample_is_uploaded_once() -> io::Result<()> {
        let remaining =
            remaining_samples(&[("event_1.png", b"same"), ("event_2.png", b"only"), ("step_1.png", b"same")])?;
        assert_eq!(remaining, ["event_2.png", "step_1.png"]);
        Ok(())
    }

    #[test]
    fn picture_in_another_format_is_a_duplicate() -> io::Result<()> {
        let (first, second, small) = (png(64, 64, 1), png(64, 64, 2), png(32, 64, 3));
        let trainer_gif = gif(64, 64);
        let remaining = remaining_samples(&[
            ("event_1.png", &first),
            ("event_2.png", &second),
            ("event_3.png", &small),
            ("step_1.gif", &trainer_gif),
        ])?;
        assert_eq!(remaining.len(), 3, "one picture matches one copy: {remaining:?}");
        assert!(remaining.contains(&"event_3.png".to_owned()), "a picture of another size is no duplicate");
        assert_eq!(
            remaining_samples(&[("event_1.png", &first), ("step_1.png", &second)])?,
            ["event_1.png", "step_1.png"]
        );
        assert_eq!(
            remaining_samples(&[("event_1.png", b"text"), ("step_1.gif", b"text!")])?,
            ["event_1.png", "step_1.gif"]
        );
        Ok(())
    }

    #[test]
    fn webp_and_jpeg_pictures_are_uploaded_once() -> io::Result<()> {
        let (same, rotated) = (png(64, 48, 1), png(48, 64, 1));
        for (name, picture) in
            [("step_1.webp", webp(64, 48)), ("step_1.jpg", jpeg(64, 48)), ("step_1.jpeg", jpeg(64, 48))]
        {
            assert_eq!(remaining_samples(&[("event_1.png", &same), (name, &picture)])?, [name]);
            let remaining = remaining_samples(&[("event_1.png", &rotated), (name, &picture)])?;
            assert_eq!(remaining, ["event_1.png", name], "a picture of another size is no duplicate");
        }
        Ok(())
    }
}
