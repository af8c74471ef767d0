//! `{data_root}` and the like in a configuration's JSON files, as what they are on this host.
//!
//! Braces also stand in captions and prompts, so only names that this host knows are replaced. What it does not know is
//! an error only where it must have been meant as a directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use app::domain::config_paths::{DATA_ROOT, named};
use serde_json::Value;

/// What names stand for.
pub type Places = BTreeMap<String, PathBuf>;

/// Why a configuration does not work on this host.
#[derive(Debug, thiserror::Error)]
pub enum Misplaced {
    /// It names a place that is not here.
    #[error(
        "{file} has {value:?}, but this worker has no directory for {{{name}}}: start it with {} (or set {})",
        flag(name),
        variable(name)
    )]
    Unknown {
        /// The name between the braces.
        name: String,
        /// The value that has it.
        value: String,
        /// The file that has the value.
        file: String,
    },
    /// The disk refused.
    #[error("the configuration's files cannot be written: {0}")]
    Disk(#[from] io::Error),
}

fn flag(name: &str) -> String {
    if name == DATA_ROOT { "--data-root DIR".to_owned() } else { format!("--path {name}=DIR") }
}

fn variable(name: &str) -> String {
    if name == DATA_ROOT { "SIMPLETUNER_DATA_ROOT".to_owned() } else { format!("SIMPLETUNER_PATHS={name}=DIR") }
}

/// Replaces names in every JSON file below a directory. What is no JSON stays as it is: whoever reads it will say so.
///
/// # Errors
/// The first place that this host does not have, or what the disk says.
pub fn resolve(bundle: &Path, places: &Places) -> Result<(), Misplaced> {
    for file in json_files(bundle)? {
        let text = std::fs::read(&file)?;
        let Ok(mut content) = serde_json::from_slice::<Value>(&text) else { continue };
        let before = content.clone();
        replace_all(&mut content, "", places).map_err(|(name, value)| Misplaced::Unknown {
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

/// In a stable order, so that the same mistake is always the one that is told.
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

/// A name that is not here, and the value that has it.
type Unknown = (String, String);

fn replace_all(value: &mut Value, key: &str, places: &Places) -> Result<(), Unknown> {
    match value {
        Value::String(text) => {
            if let Some(name) = named(key, text).find(|name| !places.contains_key(*name)) {
                return Err((name.to_owned(), text.clone()));
            }
            *text = replaced(text, places);
            Ok(())
        }
        Value::Array(list) => list.iter_mut().try_for_each(|entry| replace_all(entry, key, places)),
        Value::Object(map) => map.iter_mut().try_for_each(|(key, entry)| replace_all(entry, key, places)),
        _ => Ok(()),
    }
}

/// The known names in it, once: what a directory is called is not looked at again.
fn replaced(text: &str, places: &Places) -> String {
    let mut rest = text;
    let mut whole = String::with_capacity(text.len());
    while let Some((before, after)) = rest.split_once('{') {
        whole.push_str(before);
        let known = after.split_once('}').and_then(|(name, behind)| Some((places.get(name)?, behind)));
        if let Some((dir, behind)) = known {
            whole.push_str(&dir.to_string_lossy());
            rest = behind;
        } else {
            whole.push('{');
            rest = after;
        }
    }
    whole + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places() -> Places {
        [("data_root", "/mnt/d"), ("cache", "/c {data_root}"), ("output_dir", "/o"), ("job_id", "j_1")]
            .into_iter()
            .map(|(name, dir)| (name.to_owned(), PathBuf::from(dir)))
            .collect()
    }

    fn result(key: &str, text: &str, places: &Places) -> Result<Value, String> {
        let mut value = json!(text);
        replace_all(&mut value, key, places).map(|()| value).map_err(|(name, _)| name)
    }

    #[test]
    fn known_names_are_replaced_wherever_they_stand() {
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
            assert_eq!(result("k", text, &places()), Ok(json!(expected)), "{text}");
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
            assert_eq!(result(key, text, &places()), Ok(json!(text)), "{text}");
        }
    }

    #[test]
    fn a_place_that_is_not_here_is_named() {
        for (key, text, name) in [
            ("instance_data_dir", "{images}/a", "images"),
            ("instance_data_dir", "{images}", "images"),
            ("--cache_path", "{images}", "images"),
            ("anything", "{images}/a", "images"),
            ("anything", "see {data_root}", "data_root"),
        ] {
            assert_eq!(result(key, text, &Places::new()), Err(name.to_owned()), "{key}: {text}");
        }
    }

    #[test]
    fn every_json_file_is_seen_to_and_nothing_else() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let write = |name: &str, text: &str| std::fs::write(temp.path().join(name), text);
        let read = |name: &str| std::fs::read_to_string(temp.path().join(name));
        std::fs::create_dir(temp.path().join("sub"))?;
        write("config.json", r#"{"--data_backend_config": "b.json", "n": [{"d": "{data_root}/x"}]}"#)?;
        write("sub/b.json", r#"[{"instance_data_dir": "{data_root}"}]"#)?;
        write("same.json", "{\"a\":1.50}")?;
        write("prompts.txt", "{data_root}")?;
        write("broken.json", "{data_root}")?;
        resolve(temp.path(), &places()).map_err(io::Error::other)?;
        assert!(read("config.json")?.contains("\"d\": \"/mnt/d/x\"") && read("sub/b.json")?.contains("\"/mnt/d\""));
        assert_eq!(
            [read("same.json")?, read("prompts.txt")?, read("broken.json")?],
            ["{\"a\":1.50}", "{data_root}", "{data_root}"]
        );

        write("sub/b.json", r#"{"dir": "{weights}/x"}"#)?;
        let why = resolve(temp.path(), &places()).map_err(|why| why.to_string());
        let why = why.err().unwrap_or_default();
        for word in ["sub/b.json", "{weights}", "--path weights=DIR", "SIMPLETUNER_PATHS=weights=DIR"] {
            assert!(why.contains(word), "{word} is not in {why}");
        }
        Ok(())
    }
}
