//! Finds the files of a configuration that its values refer to. Values are often paths of the author's machine.

/// The data-loader file if the configuration does not name one.
pub const DEFAULT_DATA_LOADER: &str = "multidatabackend.json";

/// The main file of a configuration.
pub const CONFIG_FILE: &str = "config.json";

/// Extensions of files that belong to a configuration, wherever its author stored them.
const CONFIG_EXTENSIONS: &[&str] = &["json", "jsonl", "txt", "toml", "yaml", "yml", "csv", "env"];

/// Returns whether a value may be the name of a configuration file.
pub fn is_file_name(value: &str) -> bool {
    value.rsplit_once('.').is_some_and(|(_, extension)| CONFIG_EXTENSIONS.contains(&extension))
}

/// Returns the configuration file that a path refers to: the whole path, or its longest suffix for which `has` is true.
pub fn resolve(path: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (0..parts.len()).map(|start| parts[start..].join("/")).find(|suffix| has(suffix))
}

/// Returns the data-loader file: the one that the configuration names, else the default.
pub fn resolve_data_loader(value: Option<&str>, has: impl Fn(&str) -> bool) -> Option<String> {
    resolve(value.unwrap_or(DEFAULT_DATA_LOADER), has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(path: &str) -> bool {
        ["config.json", "loaders/mine.json", "multidatabackend.json"].contains(&path)
    }

    #[test]
    fn author_path_resolves_by_its_suffix() {
        let rows = [
            ("loaders/mine.json", Some("loaders/mine.json")),
            ("/home/ada/config/loaders/mine.json", Some("loaders/mine.json")),
            ("./config//multidatabackend.json", Some("multidatabackend.json")),
            ("mine.json", None),
            ("", None),
            ("/", None),
        ];
        for (path, expected) in rows {
            assert_eq!(resolve(path, has).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn named_data_loader_is_used() {
        assert_eq!(resolve_data_loader(None, has).as_deref(), Some("multidatabackend.json"));
        assert_eq!(resolve_data_loader(Some("x/loaders/mine.json"), has).as_deref(), Some("loaders/mine.json"));
        assert_eq!(resolve_data_loader(Some("other.json"), has), None);
    }

    #[test]
    fn file_names_are_recognized() {
        assert!(is_file_name("lycoris_config.json") && is_file_name("a/b.toml"));
        assert!(!is_file_name("a photo of a cat") && !is_file_name("model.safetensors") && !is_file_name("json"));
    }
}
