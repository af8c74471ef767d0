//! Placeholders in configurations for directories of a worker's host: `{data_root}/cats`.
//!
//! Braces also occur in captions and prompts, so only unambiguous cases count as placeholders.

/// The placeholder that has its own flag.
pub const DATA_ROOT: &str = "data_root";
/// Placeholders whose values are set for each job.
pub const JOB_PLACEHOLDERS: [&str; 2] = ["output_dir", "job_id"];

/// Endings of keys whose values are paths.
const PATH_KEYS: [&str; 5] = ["dir", "path", "root", "file", "folder"];

/// Returns whether this is a valid name between braces.
pub fn is_placeholder_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the placeholders in a value of this key: `{data_root}` anywhere, other names only at the start of a path.
pub fn placeholders<'a>(key: &str, text: &'a str) -> impl Iterator<Item = &'a str> {
    let data_root = text.contains("{data_root}").then_some(DATA_ROOT);
    let first = text.strip_prefix('{').and_then(|rest| rest.split_once('}')).filter(|(name, rest)| {
        let is_path = rest.starts_with('/') || rest.is_empty() && PATH_KEYS.iter().any(|end| key.ends_with(end));
        is_placeholder_name(name) && is_path && *name != DATA_ROOT
    });
    data_root.into_iter().chain(first.map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_in_paths() {
        let rows: [(&str, &str, &[&str]); 9] = [
            ("instance_data_dir", "{images}/a", &["images"]),
            ("instance_data_dir", "{images}", &["images"]),
            ("anything", "{images}/a", &["images"]),
            ("anything", "see {data_root}", &["data_root"]),
            ("anything", "{data_root}", &["data_root"]),
            ("dir", "{cache}/{data_root}", &["data_root", "cache"]),
            ("caption", "{subject}", &[]),
            ("caption", "{subject} in a garden", &[]),
            ("x", "{1a}/c", &[]),
        ];
        for (key, text, expected) in rows {
            assert_eq!(placeholders(key, text).collect::<Vec<_>>(), expected, "{key}: {text}");
        }
    }
}
