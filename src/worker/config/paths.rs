//! Directories of this host that replace `{name}` in configurations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use app::domain::path_placeholders::{DATA_ROOT, JOB_PLACEHOLDERS, is_placeholder_name};

/// Directories of this host by placeholder name.
pub type HostDirectories = BTreeMap<String, HostDirectory>;

/// A directory that the owner gives to jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDirectory {
    /// Absolute.
    pub path: PathBuf,
    /// Whether a sandboxed trainer may write to it.
    pub writable: bool,
}

/// Parses the variable (`name=dir:name2=dir2:rw`), `--data-root` and `--path`; the later one wins. Jobs can read a
/// directory; with `:rw` they can also write to it.
///
/// # Errors
/// A message that names the error.
pub fn parse(variable: Option<&str>, flags: &[String], data_root: Option<&Path>) -> Result<HostDirectories, String> {
    let mut paths = HostDirectories::new();
    let mut pairs: Vec<String> = Vec::new();
    for segment in variable.unwrap_or_default().split(':').map(str::trim).filter(|segment| !segment.is_empty()) {
        match pairs.last_mut().filter(|_| is_access(segment)) {
            Some(pair) => pair.extend([":", segment]),
            None => pairs.push(segment.to_owned()),
        }
    }
    for pair in &pairs {
        insert_pair(&mut paths, "SIMPLETUNER_PATHS", pair)?;
    }
    if let Some(path) = data_root {
        insert(&mut paths, "--data-root", DATA_ROOT, &path.to_string_lossy())?;
    }
    for pair in flags {
        insert_pair(&mut paths, "--path", pair)?;
    }
    Ok(paths)
}

fn insert_pair(paths: &mut HostDirectories, flag: &str, pair: &str) -> Result<(), String> {
    let (name, dir) = pair
        .split_once('=')
        .ok_or_else(|| format!("{flag} {pair:?} has no '=': use NAME=DIR, such as data_root=/mnt/data"))?;
    insert(paths, flag, name.trim(), dir.trim())
}

const READ_ONLY: &str = "ro";
const READ_WRITE: &str = "rw";

fn is_access(text: &str) -> bool {
    [READ_ONLY, READ_WRITE].contains(&text)
}

/// Splits the directory from its access mode.
fn split_access(argument: &str) -> (&Path, &str) {
    match argument.rsplit_once(':') {
        Some((dir, access)) if is_access(access) => (Path::new(dir), access),
        _ => (Path::new(argument), READ_ONLY),
    }
}

/// Where trainers start.
///
/// # Errors
/// If the directory does not exist.
pub fn trainer_cwd(argument: &Path) -> Result<HostDirectory, String> {
    let argument = argument.to_string_lossy();
    let (dir, access) = split_access(&argument);
    let path = dir.canonicalize().ok().filter(|path| path.is_dir());
    let path = path.ok_or_else(|| format!("--trainer-cwd: {} is not a directory", dir.display()))?;
    Ok(HostDirectory { path, writable: access == READ_WRITE })
}

fn insert(paths: &mut HostDirectories, flag: &str, name: &str, argument: &str) -> Result<(), String> {
    let (dir, access) = split_access(argument);
    if !is_placeholder_name(name) {
        return Err(format!(
            "{flag}: {name:?} is not a valid name: use letters, digits and '_', not starting with a digit"
        ));
    }
    if JOB_PLACEHOLDERS.contains(&name) {
        return Err(format!("{flag}: {{{name}}} is different for every job and cannot be set; use another name"));
    }
    if dir.as_os_str().is_empty() {
        return Err(format!("{flag}: {{{name}}} has no directory"));
    }
    let absolute =
        std::path::absolute(dir).map_err(|error| format!("{flag}: {} is invalid: {error}", dir.display()))?;
    if absolute.to_str().is_none() {
        return Err(format!("{flag}: {} is not UTF-8, as configurations require", absolute.display()));
    }
    paths.insert(name.to_owned(), HostDirectory { path: absolute, writable: access == READ_WRITE });
    Ok(())
}

/// If a job may change a directory, it can replace its content by a link, and the next job would get the link's target.
///
/// # Errors
/// A message that names a directory, possibly the agent's own, inside one that jobs may change.
pub fn check_nesting(paths: &HostDirectories, work_dir: &Path) -> Result<(), String> {
    let directories = paths.iter().map(|(name, dir)| (format!("{{{name}}}"), dir.path.as_path()));
    for (label, path) in directories.chain([("the work directory".to_owned(), work_dir)]) {
        if let Some((name, outer)) = writable_ancestor(paths, path) {
            return Err(format!(
                "{label} is {}, inside {{{name}}}, {}, which jobs may change (:rw): a job could replace it by a \
                link. Remove :rw there, or move one of them",
                path.display(),
                outer.display()
            ));
        }
    }
    Ok(())
}

/// The directory writable by jobs that contains a path, and its name.
pub fn writable_ancestor<'a>(paths: &'a HostDirectories, path: &Path) -> Option<(&'a str, &'a Path)> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let inner = canonical(path);
    let contains_path =
        |dir: &&HostDirectory| dir.writable && inner != canonical(&dir.path) && inner.starts_with(canonical(&dir.path));
    paths.iter().find(|(_, dir)| contains_path(dir)).map(|(name, dir)| (name.as_str(), dir.path.as_path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_all(variable: Option<&str>, flags: &[&str], data_root: Option<&str>) -> Result<Vec<String>, String> {
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let paths = parse(variable, &flags, data_root.map(Path::new))?;
        let format_dir =
            |dir: &HostDirectory| format!("{}{}", dir.path.display(), if dir.writable { ":rw" } else { "" });
        Ok(paths.iter().map(|(name, dir)| format!("{name}={}", format_dir(dir))).collect())
    }

    #[test]
    fn flags_override_the_variable() {
        let all = parse_all(Some("data_root=/v:cache=/c:"), &["data_root=/f", "x_1=/x y"], Some("/root"));
        assert_eq!(all, Ok(vec!["cache=/c".to_owned(), "data_root=/f".to_owned(), "x_1=/x y".to_owned()]));
        assert_eq!(parse_all(Some("data_root=/v"), &[], Some("/root")), Ok(vec!["data_root=/root".to_owned()]));
        assert_eq!(parse_all(Some(""), &[], None), Ok(vec![]));
        let relative = parse_all(None, &["data=here"], None).unwrap_or_default();
        assert!(relative.iter().all(|path| path.starts_with("data=/") && path.ends_with("/here")), "{relative:?}");
    }

    #[test]
    fn directories_are_read_only_by_default() {
        let all = parse_all(Some("a=/a:rw:b=/b:ro:c=/c"), &["d=/d:rw", "e=/e", "f=/x:y"], Some("/root:rw"));
        let expected = ["a=/a:rw", "b=/b", "c=/c", "d=/d:rw", "data_root=/root:rw", "e=/e", "f=/x:y"];
        assert_eq!(all, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn paths_inside_writable_directories_are_rejected() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let path = |name: &str| temp.path().join(name).display().to_string();
        for dir in ["data/models", "database", "work"] {
            std::fs::create_dir_all(path(dir))?;
        }
        std::os::unix::fs::symlink(path("data"), path("link"))?;
        let check = |directories: &[(&str, &str)], work: &str| {
            let flags: Vec<_> = directories.iter().map(|(name, dir)| format!("{name}={}", path(dir))).collect();
            parse(None, &flags, None).and_then(|paths| check_nesting(&paths, Path::new(&path(work))))
        };
        for (directories, work) in [
            (&[("a", "data"), ("b", "data/models")][..], "work"),
            (&[("a", "data"), ("b", "data/models:rw")], "work"),
            (&[("a", "data:rw"), ("b", "data:rw")], "work"),
            (&[("a", "data:rw"), ("b", "database")], "work"),
            (&[("a", "data")], "data/models"),
        ] {
            assert_eq!(check(directories, work), Ok(()), "{directories:?}");
        }
        for (directories, work, sentence_part) in [
            (&[("a", "data:rw"), ("b", "data/models")][..], "work", "{b}"),
            (&[("a", "link:rw"), ("b", "data/models:rw")], "work", "{b}"),
            (&[("a", "data:rw"), ("b", "link/models")], "work", "{b}"),
            (&[("a", "data:rw")], "data/models", "work directory"),
            (&[("a", "data:rw")], "data/not/there", "work directory"),
        ] {
            assert!(
                check(directories, work).is_err_and(|error| error.contains(sentence_part)),
                "{directories:?} {work}"
            );
        }
        Ok(())
    }

    #[test]
    fn invalid_paths_are_named_in_the_error() {
        for (pair, sentence_part) in [
            ("data", "'='"),
            ("1a=/x", "not a valid name"),
            ("a-b=/x", "not a valid name"),
            ("output_dir=/x", "every job"),
            ("a=", "directory"),
        ] {
            assert!(
                parse_all(None, &[pair], None)
                    .is_err_and(|error| error.contains("--path") && error.contains(sentence_part)),
                "{pair}"
            );
            let error = parse_all(Some(pair), &[], None);
            assert!(error.is_err_and(|error| error.contains("SIMPLETUNER_PATHS")), "{pair}");
        }
    }
}
