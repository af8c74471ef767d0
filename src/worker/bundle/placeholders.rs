//! Replaces `{data_root}` and other placeholders in a configuration's JSON files by directories of this host.
//!
//! Braces also occur in captions and prompts, so only names that this host knows are replaced. An unknown name is an
//! error only where it must be meant as a directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use app::domain::path_placeholders::{DATA_ROOT, placeholders};
use serde_json::Value;

/// Directories by placeholder name.
pub type Placeholders = BTreeMap<String, PathBuf>;

/// Why a configuration does not work on this host.
#[derive(Debug, thiserror::Error)]
pub enum PlaceholderError {
    /// It uses a placeholder that this host does not have.
    #[error(
        "{file} has {value:?}, but this worker has no directory for {{{name}}}: start it with {} (or set {})",
        flag_name(name),
        variable_name(name)
    )]
    Unknown {
        /// The name between the braces.
        name: String,
        /// The value that contains it.
        value: String,
        /// The file that contains the value.
        file: String,
    },
    #[error("cannot write the configuration's files: {0}")]
    Write(#[from] io::Error),
}

fn flag_name(name: &str) -> String {
    if name == DATA_ROOT { "--data-root DIR".to_owned() } else { format!("--path {name}=DIR") }
}

fn variable_name(name: &str) -> String {
    if name == DATA_ROOT { "SIMPLETUNER_DATA_ROOT".to_owned() } else { format!("SIMPLETUNER_PATHS={name}=DIR") }
}

/// Replaces placeholders in every JSON file below a directory. Invalid JSON stays unchanged; whatever reads it reports
/// the error.
///
/// # Errors
/// The first unknown placeholder, or an I/O error.
pub fn resolve_in_files(bundle: &Path, placeholders: &Placeholders) -> Result<(), PlaceholderError> {
    for file in json_files(bundle)? {
        let text = std::fs::read(&file)?;
        let Ok(mut content) = serde_json::from_slice::<Value>(&text) else { continue };
        let before = content.clone();
        replace_all(&mut content, "", placeholders).map_err(|(name, value)| PlaceholderError::Unknown {
            name,
            value: value.chars().take(200).collect(),
            file: file.strip_prefix(bundle).unwrap_or(&file).display().to_string(),
        })?;
        if content != before {
            std::fs::write(&file, serde_json::to_vec_pretty(&content).map_err(io::Error::other)?)?;
        }
    }
    Ok(())
}

/// In a stable order, so that the same error is always the one reported.
fn json_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(json_files(&entry.path())?);
        } else if entry.path().extension().is_some_and(|extension| extension == "json") {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// An unknown name, and the value that contains it.
type UnknownPlaceholder = (String, String);

fn replace_all(value: &mut Value, key: &str, values: &Placeholders) -> Result<(), UnknownPlaceholder> {
    match value {
        Value::String(text) => {
            if let Some(name) = placeholders(key, text).find(|name| !values.contains_key(*name)) {
                return Err((name.to_owned(), text.clone()));
            }
            *text = replace_known(text, values);
            Ok(())
        }
        Value::Array(list) => list.iter_mut().try_for_each(|entry| replace_all(entry, key, values)),
        Value::Object(map) => map.iter_mut().try_for_each(|(key, entry)| replace_all(entry, key, values)),
        _ => Ok(()),
    }
}

/// Replaces known names once: the inserted directory is not searched again.
fn replace_known(text: &str, values: &Placeholders) -> String {
    let mut rest = text;
    let mut replaced = String::with_capacity(text.len());
    while let Some((before, after)) = rest.split_once('{') {
        replaced.push_str(before);
        let known = after.split_once('}').and_then(|(name, suffix)| Some((values.get(name)?, suffix)));
        if let Some((dir, suffix)) = known {
            replaced.push_str(&dir.to_string_lossy());
            rest = suffix;
        } else {
            replaced.push('{');
            rest = after;
        }
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values() -> Placeholders {
        [("data_root", "/mnt/d"), ("cache", "/c {data_root}"), ("output_dir", "/o"), ("job_id", "j_1")]
            .into_iter()
            .map(|(name, dir)| (name.to_owned(), PathBuf::from(dir)))
            .collect()
    }

    fn result(key: &str, text: &str, values: &Placeholders) -> Result<Value, String> {
        let mut value = json!(text);
        replace_all(&mut value, key, values).map(|()| value).map_err(|(name, _)| name)
    }

    #[test]
    fn known_placeholders_are_replaced_everywhere() {
        for (text, expected) in [
            ("{data_root}/images", "/mnt/d/images"),
            ("{data_root}", "/mnt/d"),
            ("{cache}/x", "/c {data_root}/x"),
            ("{output_dir}/vae/{job_id}", "/o/vae/j_1"),
            ("file://{data_root}/a", "file:///mnt/d/a"),
            ("{ {data_root} }", "{ /mnt/d }"),
            ("{{data_root}}", "{/mnt/d}"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(result("k", text, &values()), Ok(json!(expected)), "{text}");
        }
    }

    #[test]
    fn other_braces_are_left_alone() {
        for (key, text) in [
            ("caption", "{subject} in a garden"),
            ("caption", "{subject}"),
            ("prompt", "a photo of {subject}/{other}"),
            ("x", "{a b}/c"),
            ("x", "{1a}/c"),
            ("x", "{}/c"),
            ("x", "{\"json\": 1}"),
            ("x", "{unclosed/c"),
            ("x", "}{"),
            ("--caption_template", "{a}, {b:>3}"),
        ] {
            assert_eq!(result(key, text, &values()), Ok(json!(text)), "{text}");
        }
    }

    #[test]
    fn unknown_placeholder_is_named_in_the_error() {
        for (key, text, name) in [
            ("instance_data_dir", "{images}/a", "images"),
            ("instance_data_dir", "{images}", "images"),
            ("--cache_path", "{images}", "images"),
            ("anything", "{images}/a", "images"),
            ("anything", "see {data_root}", "data_root"),
        ] {
            assert_eq!(result(key, text, &Placeholders::new()), Err(name.to_owned()), "{key}: {text}");
        }
    }

    #[test]
    fn only_json_files_are_rewritten() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let write = |name: &str, text: &str| std::fs::write(temp.path().join(name), text);
        let read = |name: &str| std::fs::read_to_string(temp.path().join(name));
        std::fs::create_dir(temp.path().join("sub"))?;
        write("config.json", r#"{"--data_backend_config": "b.json", "n": [{"d": "{data_root}/x"}]}"#)?;
        write("sub/b.json", r#"[{"instance_data_dir": "{data_root}"}]"#)?;
        write("same.json", "{\"a\":1.50}")?;
        write("prompts.txt", "{data_root}")?;
        write("broken.json", "{data_root}")?;
        resolve_in_files(temp.path(), &values()).map_err(io::Error::other)?;
        assert!(read("config.json")?.contains("\"d\": \"/mnt/d/x\"") && read("sub/b.json")?.contains("\"/mnt/d\""));
        assert_eq!(
            [read("same.json")?, read("prompts.txt")?, read("broken.json")?],
            ["{\"a\":1.50}", "{data_root}", "{data_root}"]
        );

        write("sub/b.json", r#"{"dir": "{weights}/x"}"#)?;
        let error = resolve_in_files(temp.path(), &values()).map_err(|error| error.to_string());
        let error = error.err().unwrap_or_default();
        for part in ["sub/b.json", "{weights}", "--path weights=DIR", "SIMPLETUNER_PATHS=weights=DIR"] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
        Ok(())
    }
}
