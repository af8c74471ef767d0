//! Names in braces that stand for directories of a worker's host in a configuration: `{data_root}/cats`.
//!
//! Braces also stand in captions and prompts, so only what must mean a directory counts as one.

/// The name that has a flag of its own.
pub const DATA_ROOT: &str = "data_root";
/// What every job has a value of its own for.
pub const OF_THE_JOB: [&str; 2] = ["output_dir", "job_id"];

/// Ends of keys whose values are paths.
const PATH_KEYS: [&str; 5] = ["dir", "path", "root", "file", "folder"];

/// Whether this can stand between braces.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|found| found.is_ascii_alphanumeric() || found == '_')
}

/// The names in a value of this key that must mean directories: `{data_root}` anywhere, another one where a path begins
/// with it.
pub fn named<'a>(key: &str, text: &'a str) -> impl Iterator<Item = &'a str> {
    let data_root = text.contains("{data_root}").then_some(DATA_ROOT);
    let first = text.strip_prefix('{').and_then(|rest| rest.split_once('}')).filter(|(name, rest)| {
        let is_path = rest.starts_with('/') || rest.is_empty() && PATH_KEYS.iter().any(|end| key.ends_with(end));
        is_name(name) && is_path && *name != DATA_ROOT
    });
    data_root.into_iter().chain(first.map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_mean_a_directory() {
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
            assert_eq!(named(key, text).collect::<Vec<_>>(), expected, "{key}: {text}");
        }
    }
}
