//! Which files of a configuration its values name. Values are often paths of the author's machine.

/// The data-loader file of a configuration that names none.
pub const DATA_LOADER: &str = "multidatabackend.json";

/// The configuration itself.
pub const CONFIG: &str = "config.json";

/// Files of these kinds belong to a configuration, wherever its author had them.
const KINDS: &[&str] = &["json", "jsonl", "txt", "toml", "yaml", "yml", "csv", "env"];

/// Whether a value may name a file of a configuration.
pub fn may_be_file(value: &str) -> bool {
    value.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind))
}

/// The file that a path means: the whole of it, or as much of its end as the configuration `has`.
pub fn named(path: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (0..parts.len()).map(|start| parts[start..].join("/")).find(|end| has(end))
}

/// The data-loader file: what the configuration names, else the usual one.
pub fn data_loader(value: Option<&str>, has: impl Fn(&str) -> bool) -> Option<String> {
    named(value.unwrap_or(DATA_LOADER), has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(path: &str) -> bool {
        ["config.json", "loaders/mine.json", "multidatabackend.json"].contains(&path)
    }

    #[test]
    fn a_path_of_the_authors_means_the_file_at_its_end() {
        let rows = [
            ("loaders/mine.json", Some("loaders/mine.json")),
            ("/home/ada/config/loaders/mine.json", Some("loaders/mine.json")),
            ("./config//multidatabackend.json", Some("multidatabackend.json")),
            ("mine.json", None),
            ("", None),
            ("/", None),
        ];
        for (path, expected) in rows {
            assert_eq!(named(path, has).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn the_data_loader_is_the_one_that_is_named() {
        assert_eq!(data_loader(None, has).as_deref(), Some("multidatabackend.json"));
        assert_eq!(data_loader(Some("x/loaders/mine.json"), has).as_deref(), Some("loaders/mine.json"));
        assert_eq!(data_loader(Some("other.json"), has), None);
    }

    #[test]
    fn what_may_be_a_file() {
        assert!(may_be_file("lycoris_config.json") && may_be_file("a/b.toml"));
        assert!(!may_be_file("a photo of a cat") && !may_be_file("model.safetensors") && !may_be_file("json"));
    }
}
