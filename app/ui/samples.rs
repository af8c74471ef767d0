//! Validation images by step and prompt.

use std::collections::BTreeSet;

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
    let mut images: Vec<SampleImage> = files.iter().filter(|file| is_image(file)).map(sample_from_file).collect();
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

fn is_image(file: &ArtifactView) -> bool {
    let extension = file.path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    file.kind == ArtifactKind::Sample && matches!(extension.as_str(), "png" | "jpg" | "jpeg" | "webp" | "gif" | "avif")
}

fn sample_from_file(file: &ArtifactView) -> SampleImage {
    let (step, key) = parse_sample_name(&file.path);
    SampleImage { step, key: key.to_owned(), file: file.clone() }
}

/// Returns the number after `step` in a path, and what follows it: `step_400_0.png` is sample 0 at step 400,
/// `step-000400/a.png` is sample `a` at step 400. In file names the first match counts, because the prompt may follow.
fn parse_sample_name(path: &str) -> (Option<u64>, &str) {
    let path = path.rsplit_once('.').map_or(path, |(path, _)| path);
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = strip_event_prefix(file).unwrap_or(file);
    let in_name = name.match_indices("step").find_map(|(start, _)| step_and_key(&name[start..]));
    let in_path = || path.rmatch_indices("step").find_map(|(start, _)| step_and_key(&path[start..]));
    in_name.or_else(in_path).map_or((None, name), |(step, key)| (Some(step), if key.is_empty() { "0" } else { key }))
}

/// Parses `step_400_a`.
fn step_and_key(text: &str) -> Option<(u64, &str)> {
    let is_separator = |c: char| matches!(c, '_' | '-' | '/');
    let rest = text.strip_prefix("step")?.trim_start_matches(is_separator);
    let digits = rest.len() - rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
    Some((rest[..digits].parse().ok()?, rest[digits..].trim_start_matches(is_separator)))
}

/// Removes the prefix that the agent adds to samples from events: `event_000012_images_0_step_400_a_cat`.
fn strip_event_prefix(name: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (event, rest) = name.strip_prefix("event_")?.split_once('_')?;
    let (list, rest) = rest.split_once('_')?;
    let (index, rest) = rest.split_once('_')?;
    (is_number(event) && matches!(list, "images" | "videos" | "audios") && is_number(index)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::checkpoints::file;

    #[test]
    fn steps_and_samples_are_read_from_paths() {
        assert_eq!(parse_sample_name("samples/step_400_0.png"), (Some(400), "0"));
        assert_eq!(parse_sample_name("samples/step-000050/a cat.png"), (Some(50), "a cat"));
        assert_eq!(parse_sample_name("step_7.png"), (Some(7), "0"));
        assert_eq!(parse_sample_name("samples/a.png"), (None, "a"));
        assert_eq!(parse_sample_name("step"), (None, "step"));
        assert_eq!(parse_sample_name("footstep_x/1.png"), (None, "1"));
        assert_eq!(parse_sample_name("s/step_400_a_step_back.png"), (Some(400), "a_step_back"));
    }

    #[test]
    fn samples_from_events_are_named_as_others_are() {
        assert_eq!(parse_sample_name("v/event_000012_images_0_step_400_a_cat.png"), (Some(400), "a_cat"));
        assert_eq!(parse_sample_name("v/event_000012_images_3_a_cat.png"), (None, "a_cat"));
        assert_eq!(parse_sample_name("v/event_000012_images_3.png"), (None, "event_000012_images_3"));
        assert_eq!(parse_sample_name("v/event_preview_images_0.png"), (None, "event_preview_images_0"));
        // Two prompts with the same name at two steps.
        let images = sample_images(&[
            "v/event_000001_images_0_step_1_a_cat.png",
            "v/event_000002_images_0_step_1_a_cat.png",
            "v/event_000003_images_0_step_2_a_cat.png",
        ]);
        assert_eq!(images.len(), 3, "both are shown");
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
