//! Validation images by step and prompt.

use std::collections::BTreeSet;

use crate::domain::sample_names::parse_image_name;
use crate::protocol::artifacts::ArtifactView;
use crate::protocol::status::ArtifactKind;

/// An image of one prompt at one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampleImage {
    /// `None` if the file's name does not contain it.
    pub step: Option<u64>,
    /// Identifies the sample within its step; the same at every step.
    pub key: String,
    pub file: ArtifactView,
}

/// A direction to navigate from an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The previous sample of the same step.
    Left,
    /// The next sample of the same step.
    Right,
    /// A later step of the same sample.
    Up,
    /// An earlier step of the same sample.
    Down,
}

/// Returns the images among these files, ordered by step and key; of several attempts, those of the newest. Files that
/// browsers do not show as images are ignored.
pub(crate) fn samples(files: &[ArtifactView]) -> Vec<SampleImage> {
    let mut images: Vec<SampleImage> = files.iter().filter_map(sample_from_file).collect();
    images.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)).then(b.file.attempt.cmp(&a.file.attempt)));
    let is_older = |later: &SampleImage, first: &SampleImage| later.file.attempt != first.file.attempt;
    images.dedup_by(|later, first| (later.step, &later.key) == (first.step, &first.key) && is_older(later, first));
    images
}

/// Orders by step, then by key, numerically if it is a number.
fn sort_key(sample: &SampleImage) -> (Option<u64>, u64, &str) {
    (sample.step, sample.key.parse().unwrap_or(u64::MAX), &sample.key)
}

/// Returns the steps that have samples, in ascending order.
pub(crate) fn steps(samples: &[SampleImage]) -> Vec<u64> {
    samples.iter().filter_map(|sample| sample.step).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the index of the next image in a direction.
pub(crate) fn neighbor(samples: &[SampleImage], from: usize, direction: Direction) -> Option<usize> {
    let current = samples.get(from)?;
    let (is_forward, is_candidate): (bool, fn(&SampleImage, &SampleImage) -> bool) = match direction {
        Direction::Left => (false, |a, b| a.step == b.step),
        Direction::Right => (true, |a, b| a.step == b.step),
        Direction::Up => (true, |a, b| a.key == b.key && a.step != b.step),
        Direction::Down => (false, |a, b| a.key == b.key && a.step != b.step),
    };
    let is_match = |index: &usize| is_candidate(current, &samples[*index]);
    if is_forward { (from + 1..samples.len()).find(is_match) } else { (0..from).rev().find(is_match) }
}

fn sample_from_file(file: &ArtifactView) -> Option<SampleImage> {
    let (step, key) = parse_image_name(&file.path).filter(|_| file.kind == ArtifactKind::Sample)?;
    Some(SampleImage { step, key: key.to_owned(), file: file.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::checkpoints::file;

    #[test]
    fn two_prompts_with_the_same_name_are_both_shown() {
        let images = sample_images(&[
            "v/event_000001_images_0_step_1_a_cat.png",
            "v/event_000002_images_0_step_1_a_cat.png",
            "v/event_000003_images_0_step_2_a_cat.png",
        ]);
        assert_eq!(images.len(), 3);
        assert_eq!((neighbor(&images, 0, Direction::Up), neighbor(&images, 2, Direction::Down)), (Some(2), Some(1)));
    }

    fn sample_images(paths: &[&str]) -> Vec<SampleImage> {
        samples(&paths.iter().map(|path| file(path, ArtifactKind::Sample, 1, 0)).collect::<Vec<_>>())
    }

    #[test]
    fn only_images_count_in_the_order_of_steps_and_numbers() {
        let mut files: Vec<_> =
            ["s/step_100_10.png", "s/step_9_0.png", "s/step_100_2.png", "s/step_200.svg", "s/x.webp"]
                .map(|path| file(path, ArtifactKind::Sample, 1, 0))
                .into();
        files.push(file("step_300.png", ArtifactKind::Other, 1, 0));
        files.push(file("s/step_9_0.png", ArtifactKind::Sample, 2, 0));
        let images = samples(&files);
        let keys: Vec<_> = images.iter().map(|s| (s.step, s.key.as_str(), s.file.attempt.0)).collect();
        assert_eq!(keys, [(None, "x", 1), (Some(9), "0", 2), (Some(100), "2", 1), (Some(100), "10", 1)]);
        assert_eq!(steps(&images), [9, 100]);
    }

    #[test]
    fn arrow_keys_move_within_a_step_and_between_steps() {
        let images = sample_images(&["step_1_0.png", "step_1_1.png", "step_2_1.png", "step_3_0.png", "step_3_1.png"]);
        assert_eq!(neighbor(&images, 0, Direction::Right), Some(1));
        assert_eq!(neighbor(&images, 1, Direction::Right), None);
        assert_eq!(neighbor(&images, 0, Direction::Up), Some(3));
        assert_eq!(neighbor(&images, 4, Direction::Down), Some(2));
        assert_eq!(neighbor(&images, 3, Direction::Left), None);
        assert_eq!(neighbor(&images, 99, Direction::Left), None);
    }
}
