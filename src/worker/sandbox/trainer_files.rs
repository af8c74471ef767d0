//! The files of the host that the trainer's program needs: its interpreter, its packages, the files named by its
//! command.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::worker::trainer_program::is_python;

/// Prints where a Python finds its parts, one path per line: its installation, its packages (also editable ones), and
/// the module to run.
const PYTHON_PATHS_SCRIPT: &str = r#"
import importlib.util, os, sys
found = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(sys.executable)}
found.update(path for path in sys.path if path)
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        found.update(str(path) for path in getattr(module, "MAPPING", {}).values())
for name in sys.argv[1:]:
    try:
        spec = importlib.util.find_spec(name.split(".")[0])
    except Exception:
        continue
    if spec is not None:
        found.update(spec.submodule_search_locations or [])
        if spec.origin and os.path.isabs(spec.origin):
            found.add(os.path.dirname(spec.origin))
print("\n".join(os.path.abspath(path) for path in found))
"#;
/// No script begins with a longer line.
const MAX_SHEBANG_BYTES: usize = 4096;

/// The required paths. `search` is the `PATH`.
pub fn required_paths(command: &[String], search: &OsStr) -> BTreeSet<PathBuf> {
    let Some((program, args)) = command.split_first() else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    match find_program(program, search) {
        Some(program) => add_program(&program, args, search, &mut found),
        // The attempt to start it reports the error, for which it must be visible.
        None if Path::new(program).is_dir() => drop(found.insert(PathBuf::from(program))),
        None => {}
    }
    // Paths that the owner wrote into the command are meant to be readable.
    for arg in args.iter().map(Path::new).filter(|arg| arg.is_absolute() && arg.exists()) {
        found.insert(parent_dir(arg));
    }
    found
}

fn add_program(program: &Path, args: &[String], search: &OsStr, found: &mut BTreeSet<PathBuf>) {
    // Each link on the path, and its directory: a program looks for its parts near its own file.
    let mut path = program.to_owned();
    while found.insert(parent_dir(&path)) {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or(target.clone(), |parent| parent.join(target));
    }
    if is_python(program) {
        let modules = args.iter().skip_while(|arg| *arg != "-m").skip(1).take(1);
        found.extend(query_python_paths(program, modules));
    } else if let Some((interpreter, rest)) = interpreter(program, search)
        && interpreter != program
    {
        add_program(&interpreter, &rest, search, found);
    }
}

/// The directory that contains a program or script.
fn parent_dir(path: &Path) -> PathBuf {
    if path.is_dir() { path.to_owned() } else { path.parent().map(Path::to_owned).unwrap_or_default() }
}

fn query_python_paths<'a>(python: &Path, modules: impl Iterator<Item = &'a String>) -> Vec<PathBuf> {
    let output = Command::new(python)
        .args(["-c", PYTHON_PATHS_SCRIPT])
        .args(modules)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect(),
        Err(error) => {
            tracing::warn!(program = %python.display(), %error, "cannot ask the trainer's Python for its paths");
            Vec::new()
        }
    }
}

/// The interpreter in a script's first line, with its arguments; `env` is resolved.
fn interpreter(script: &Path, search: &OsStr) -> Option<(PathBuf, Vec<String>)> {
    let mut bytes = Vec::new();
    fs::File::open(script).ok()?.take(MAX_SHEBANG_BYTES as u64).read_to_end(&mut bytes).ok()?;
    let first_line = bytes.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let line = std::str::from_utf8(first_line).ok()?;
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let mut program = words.next()?;
    if Path::new(&program).file_name() == Some(OsStr::new("env")) {
        program = words.by_ref().find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    Some((find_program(&program, search)?, words.collect()))
}

/// Finds a program as a shell does.
fn find_program(program: &str, search: &OsStr) -> Option<PathBuf> {
    if program.contains('/') {
        return std::path::absolute(program).ok().filter(|path| path.is_file());
    }
    std::env::split_paths(search).map(|dir| dir.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn script(path: &Path, text: &str) -> io::Result<()> {
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
    }

    fn paths(command: &str, search: &Path) -> BTreeSet<PathBuf> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let mut all = vec![search.to_owned()];
        all.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        required_paths(&words, &std::env::join_paths(all).unwrap_or_default())
    }

    #[test]
    fn program_requires_its_directory_links_and_interpreter() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let [bin, real, inner] = ["bin", "real", "inner"].map(|name| temp.path().join(name));
        for dir in [&bin, &real, &inner] {
            fs::create_dir(dir)?;
        }
        script(&inner.join("run"), "#!/bin/sh\n")?;
        script(&real.join("train"), &format!("#!/usr/bin/env -S {}\n", inner.join("run").display()))?;
        symlink("../real/train", bin.join("train"))?;
        let found = paths("train --data x", &bin);
        for dir in [&bin, &temp.path().join("bin/../real"), &inner, &PathBuf::from("/bin")] {
            assert!(found.contains(dir), "{} is not in {found:?}", dir.display());
        }
        assert_eq!(paths("no-such-trainer", &bin), BTreeSet::new());
        Ok(())
    }

    #[test]
    fn paths_in_the_command_are_readable() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        fs::write(temp.path().join("train.py"), "")?;
        let found = paths(&format!("sh {} /no/such/file", temp.path().join("train.py").display()), temp.path());
        assert!(found.contains(temp.path()) && !found.contains(Path::new("/no/such")));
        Ok(())
    }

    #[test]
    fn python_reports_its_package_paths() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let found = paths("python3 -m json.tool", temp.path());
        let lib = found.iter().find(|path| path.join("json/tool.py").is_file());
        assert!(lib.is_some() || found.iter().any(|path| path.ends_with("json")), "{found:?}");
        Ok(())
    }
}
