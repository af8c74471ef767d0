//! Validation images, by step and by sample.

use std::collections::BTreeSet;

use crate::protocol::artifacts::ArtifactView;
use crate::protocol::status::ArtifactKind;

/// An image that a trainer made at a step, of one of its prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    /// None if its name does not say.
    pub step: Option<u64>,
    /// Which of the step's samples: the same at every step.
    pub key: String,
    pub file: ArtifactView,
}

/// Where to go from an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the sample before, of the same step.
    Left,
    /// To the one after.
    Right,
    /// To a later step of the same sample.
    Up,
    /// To an earlier one.
    Down,
}

/// The images among these files, by step and then by key; of several attempts the newest's. Only what a browser shows as an
/// image: anything else stays among the files.
pub(crate) fn samples(files: &[ArtifactView]) -> Vec<Sample> {
    let mut found: Vec<Sample> = files.iter().filter(|file| is_image(file)).map(sample).collect();
    found.sort_by(|a, b| order(a).cmp(&order(b)).then(b.file.attempt.cmp(&a.file.attempt)));
    found.dedup_by(|later, first| (later.step, &later.key) == (first.step, &first.key));
    found
}

/// By step, then by number where the key is one.
fn order(sample: &Sample) -> (Option<u64>, u64, &str) {
    (sample.step, sample.key.parse().unwrap_or(u64::MAX), &sample.key)
}

/// The steps at which there are samples, in order.
pub(crate) fn steps(samples: &[Sample]) -> Vec<u64> {
    samples.iter().filter_map(|sample| sample.step).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The image that lies next to another one, by its place among all.
pub(crate) fn next(samples: &[Sample], from: usize, way: Way) -> Option<usize> {
    let here = samples.get(from)?;
    let (later, same): (bool, fn(&Sample, &Sample) -> bool) = match way {
        Way::Left => (false, |a, b| a.step == b.step),
        Way::Right => (true, |a, b| a.step == b.step),
        Way::Up => (true, |a, b| a.key == b.key),
        Way::Down => (false, |a, b| a.key == b.key),
    };
    let fits = |place: &usize| same(here, &samples[*place]);
    if later { (from + 1..samples.len()).find(fits) } else { (0..from).rev().find(fits) }
}

fn is_image(file: &ArtifactView) -> bool {
    let extension = file.path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    file.kind == ArtifactKind::Sample && matches!(extension.as_str(), "png" | "jpg" | "jpeg" | "webp" | "gif" | "avif")
}

fn sample(file: &ArtifactView) -> Sample {
    let (step, key) = named(&file.path);
    Sample { step, key: key.to_owned(), file: file.clone() }
}

/// The number after `step` in a path, and what comes after it: `step_400_0.png` is step 400 of sample 0,
/// `step-000400/a.png` is step 400 of sample a.
fn named(path: &str) -> (Option<u64>, &str) {
    let name = path.rsplit_once('.').map_or(path, |(name, _)| name);
    let between = |c: char| matches!(c, '_' | '-' | '/');
    let step = name.rsplit_once("step").and_then(|(_, after)| {
        let after = after.trim_start_matches(between);
        let digits = after.len() - after.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        Some((after[..digits].parse().ok()?, after[digits..].trim_start_matches(between)))
    });
    match step {
        Some((step, key)) => (Some(step), if key.is_empty() { "0" } else { key }),
        None => (None, name.rsplit('/').next().unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::checkpoints::file;

    #[test]
    fn steps_and_samples_are_read_from_paths() {
        assert_eq!(named("samples/step_400_0.png"), (Some(400), "0"));
        assert_eq!(named("samples/step-000050/a cat.png"), (Some(50), "a cat"));
        assert_eq!(named("step_7.png"), (Some(7), "0"));
        assert_eq!(named("samples/a.png"), (None, "a"));
        assert_eq!(named("step"), (None, "step"));
        assert_eq!(named("footstep_x/1.png"), (None, "1"));
    }

    fn made(paths: &[&str]) -> Vec<Sample> {
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
        let found = samples(&files);
        let told: Vec<_> = found.iter().map(|s| (s.step, s.key.as_str(), s.file.attempt.0)).collect();
        assert_eq!(told, [(None, "x", 1), (Some(9), "0", 2), (Some(100), "2", 1), (Some(100), "10", 1)]);
        assert_eq!(steps(&found), [9, 100]);
    }

    #[test]
    fn one_goes_sideways_through_a_step_and_up_and_down_through_steps() {
        let all = made(&["step_1_0.png", "step_1_1.png", "step_2_1.png", "step_3_0.png", "step_3_1.png"]);
        assert_eq!(next(&all, 0, Way::Right), Some(1));
        assert_eq!(next(&all, 1, Way::Right), None);
        assert_eq!(next(&all, 0, Way::Up), Some(3));
        assert_eq!(next(&all, 4, Way::Down), Some(2));
        assert_eq!(next(&all, 3, Way::Left), None);
        assert_eq!(next(&all, 99, Way::Left), None);
    }
}
