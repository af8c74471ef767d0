//! The names of sample files: the step and the prompt.

/// The largest step: columns of the database are signed. A larger number is part of the prompt.
const MAX_STEP: u64 = i64::MAX.unsigned_abs();

/// Returns the step of a sample image, if its name contains one, and the key that identifies it within its step; none if
/// browsers do not show the file as an image.
pub fn parse_image_name(path: &str) -> Option<(Option<u64>, &str)> {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_image = matches!(extension.as_str(), "png" | "jpg" | "jpeg" | "webp" | "gif" | "avif");
    is_image.then(|| parse_sample_name(path))
}

/// Returns whether this file is the image of a sample at a step.
pub fn is_image_of(path: &str, step: u64, key: &str) -> bool {
    parse_image_name(path) == Some((Some(step), key))
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
    let step = rest[..digits].parse().ok().filter(|step| *step <= MAX_STEP)?;
    Some((step, rest[digits..].trim_start_matches(is_separator)))
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

    #[test]
    fn steps_and_samples_are_read_from_paths() {
        assert_eq!(parse_sample_name("samples/step_400_0.png"), (Some(400), "0"));
        assert_eq!(parse_sample_name("samples/step-000050/a cat.png"), (Some(50), "a cat"));
        assert_eq!(parse_sample_name("step_7.png"), (Some(7), "0"));
        assert_eq!(parse_sample_name("samples/a.png"), (None, "a"));
        assert_eq!(parse_sample_name("step"), (None, "step"));
        assert_eq!(parse_sample_name("footstep_x/1.png"), (None, "1"));
        assert_eq!(parse_sample_name("s/step_400_a_step_back.png"), (Some(400), "a_step_back"));
        assert_eq!(parse_sample_name("step_9223372036854775807_a.png"), (Some(i64::MAX.unsigned_abs()), "a"));
        assert_eq!(parse_sample_name("step_9223372036854775808_a.png"), (None, "step_9223372036854775808_a"));
    }

    #[test]
    fn samples_from_events_are_named_as_others_are() {
        assert_eq!(parse_sample_name("v/event_000012_images_0_step_400_a_cat.png"), (Some(400), "a_cat"));
        assert_eq!(parse_sample_name("v/event_000012_images_3_a_cat.png"), (None, "a_cat"));
        assert_eq!(parse_sample_name("v/event_000012_images_3.png"), (None, "event_000012_images_3"));
        assert_eq!(parse_sample_name("v/event_preview_images_0.png"), (None, "event_preview_images_0"));
    }

    #[test]
    fn only_images_have_a_name() {
        assert_eq!(parse_image_name("samples/step_400_a.PNG"), Some((Some(400), "a")));
        assert_eq!(parse_image_name("samples/a.webp"), Some((None, "a")));
        for path in ["samples/step_400_a.mp4", "samples/step_400.svg", "samples/step_400_png", ""] {
            assert_eq!(parse_image_name(path), None, "{path}");
        }
    }
}
