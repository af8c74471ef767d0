//! What `{name}` stands for on this host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use app::domain::config_paths::{DATA_ROOT, OF_THE_JOB, is_name};

/// Directories of this host by the names that configurations use.
pub type Paths = BTreeMap<String, Directory>;

/// A directory that the owner gives to jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Absolute.
    pub path: PathBuf,
    /// Whether a confined trainer may change what is there.
    pub writable: bool,
}

/// From the variable (`name=dir:name2=dir2:rw`), `--data-root`, and `--path`: the later wins. A directory can be read by jobs;
/// `:rw` after it lets them write too.
///
/// # Errors
/// A sentence that names what is wrong.
pub fn parse(variable: Option<&str>, flags: &[String], data_root: Option<&Path>) -> Result<Paths, String> {
    let mut paths = Paths::new();
    let mut pairs: Vec<String> = Vec::new();
    for piece in variable.unwrap_or_default().split(':').map(str::trim).filter(|piece| !piece.is_empty()) {
        match pairs.last_mut().filter(|_| is_access(piece)) {
            Some(pair) => pair.extend([":", piece]),
            None => pairs.push(piece.to_owned()),
        }
    }
    for pair in &pairs {
        take(&mut paths, "SIMPLETUNER_PATHS", pair)?;
    }
    if let Some(path) = data_root {
        insert(&mut paths, "--data-root", DATA_ROOT, &path.to_string_lossy())?;
    }
    for pair in flags {
        take(&mut paths, "--path", pair)?;
    }
    Ok(paths)
}

fn take(paths: &mut Paths, flag: &str, pair: &str) -> Result<(), String> {
    let (name, dir) = pair
        .split_once('=')
        .ok_or_else(|| format!("{flag} {pair:?} has no '=': write it as NAME=DIR, such as data_root=/mnt/data"))?;
    insert(paths, flag, name.trim(), dir.trim())
}

const READ_ONLY: &str = "ro";
const READ_WRITE: &str = "rw";

fn is_access(word: &str) -> bool {
    [READ_ONLY, READ_WRITE].contains(&word)
}

fn insert(paths: &mut Paths, flag: &str, name: &str, given: &str) -> Result<(), String> {
    let (dir, access) = match given.rsplit_once(':') {
        Some((dir, access)) if is_access(access) => (Path::new(dir), access),
        _ => (Path::new(given), READ_ONLY),
    };
    if !is_name(name) {
        return Err(format!("{flag}: {name:?} is no name: use letters, digits and '_', not beginning with a digit"));
    }
    if OF_THE_JOB.contains(&name) {
        return Err(format!("{flag}: {{{name}}} is different for every job and cannot be set; choose another name"));
    }
    if dir.as_os_str().is_empty() {
        return Err(format!("{flag}: {{{name}}} has no directory"));
    }
    let absolute =
        std::path::absolute(dir).map_err(|error| format!("{flag}: {} is no usable path: {error}", dir.display()))?;
    if absolute.to_str().is_none() {
        return Err(format!("{flag}: {} is not UTF-8, which configurations are", absolute.display()));
    }
    paths.insert(name.to_owned(), Directory { path: absolute, writable: access == READ_WRITE });
    Ok(())
}

/// Where a job may change a directory it can put a link in the place of what is in it, which the next job would then be given.
///
/// # Errors
/// A sentence that names a directory, or the agent's own, that lies in one which jobs may change.
pub fn check(paths: &Paths, work_dir: &Path) -> Result<(), String> {
    let given = paths.iter().map(|(name, dir)| (format!("{{{name}}}"), dir.path.as_path()));
    for (what, path) in given.chain([("the work directory".to_owned(), work_dir)]) {
        if let Some((name, outer)) = changeable_above(paths, path) {
            return Err(format!(
                "{what} is {}, which lies in {{{name}}}, {}, that jobs may change (:rw): a job could put a link in its \
                 place. Give that one without :rw, or move one of them",
                path.display(),
                outer.display()
            ));
        }
    }
    Ok(())
}

/// The directory that jobs may change and that a path lies in, below its top, with its name.
pub fn changeable_above<'a>(paths: &'a Paths, path: &Path) -> Option<(&'a str, &'a Path)> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let inner = real(path);
    let holds = |dir: &&Directory| dir.writable && inner != real(&dir.path) && inner.starts_with(real(&dir.path));
    paths.iter().find(|(_, dir)| holds(dir)).map(|(name, dir)| (name.as_str(), dir.path.as_path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(variable: Option<&str>, flags: &[&str], data_root: Option<&str>) -> Result<Vec<String>, String> {
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let paths = parse(variable, &flags, data_root.map(Path::new))?;
        let shown = |dir: &Directory| format!("{}{}", dir.path.display(), if dir.writable { ":rw" } else { "" });
        Ok(paths.iter().map(|(name, dir)| format!("{name}={}", shown(dir))).collect())
    }

    #[test]
    fn flags_win_over_the_variable() {
        let all = parsed(Some("data_root=/v:cache=/c:"), &["data_root=/f", "x_1=/x y"], Some("/root"));
        assert_eq!(all, Ok(vec!["cache=/c".to_owned(), "data_root=/f".to_owned(), "x_1=/x y".to_owned()]));
        assert_eq!(parsed(Some("data_root=/v"), &[], Some("/root")), Ok(vec!["data_root=/root".to_owned()]));
        assert_eq!(parsed(Some(""), &[], None), Ok(vec![]));
        let relative = parsed(None, &["data=here"], None).unwrap_or_default();
        assert!(relative.iter().all(|path| path.starts_with("data=/") && path.ends_with("/here")), "{relative:?}");
    }

    #[test]
    fn directories_are_read_only_unless_the_owner_says_otherwise() {
        let all = parsed(Some("a=/a:rw:b=/b:ro:c=/c"), &["d=/d:rw", "e=/e", "f=/x:y"], Some("/root:rw"));
        let expected = ["a=/a:rw", "b=/b", "c=/c", "d=/d:rw", "data_root=/root:rw", "e=/e", "f=/x:y"];
        assert_eq!(all, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn nothing_lies_in_what_jobs_may_change() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let path = |name: &str| temp.path().join(name).display().to_string();
        for dir in ["data/models", "database", "work"] {
            std::fs::create_dir_all(path(dir))?;
        }
        std::os::unix::fs::symlink(path("data"), path("link"))?;
        let checked = |given: &[(&str, &str)], work: &str| {
            let flags: Vec<_> = given.iter().map(|(name, dir)| format!("{name}={}", path(dir))).collect();
            parse(None, &flags, None).and_then(|paths| check(&paths, Path::new(&path(work))))
        };
        for (given, work) in [
            (&[("a", "data"), ("b", "data/models")][..], "work"),
            (&[("a", "data"), ("b", "data/models:rw")], "work"),
            (&[("a", "data:rw"), ("b", "data:rw")], "work"),
            (&[("a", "data:rw"), ("b", "database")], "work"),
            (&[("a", "data")], "data/models"),
        ] {
            assert_eq!(checked(given, work), Ok(()), "{given:?}");
        }
        for (given, work, word) in [
            (&[("a", "data:rw"), ("b", "data/models")][..], "work", "{b}"),
            (&[("a", "link:rw"), ("b", "data/models:rw")], "work", "{b}"),
            (&[("a", "data:rw"), ("b", "link/models")], "work", "{b}"),
            (&[("a", "data:rw")], "data/models", "work directory"),
            (&[("a", "data:rw")], "data/not/there", "work directory"),
        ] {
            assert!(checked(given, work).is_err_and(|why| why.contains(word)), "{given:?} {work}");
        }
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (pair, word) in [
            ("data", "'='"),
            ("1a=/x", "no name"),
            ("a-b=/x", "no name"),
            ("output_dir=/x", "every job"),
            ("a=", "directory"),
        ] {
            assert!(
                parsed(None, &[pair], None).is_err_and(|why| why.contains("--path") && why.contains(word)),
                "{pair}"
            );
            let why = parsed(Some(pair), &[], None);
            assert!(why.is_err_and(|why| why.contains("SIMPLETUNER_PATHS")), "{pair}");
        }
    }
}
