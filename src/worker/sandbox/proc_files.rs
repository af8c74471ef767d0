//! The part of `/proc` that belongs to the kernel and the host. The rest belongs to processes, and a trainer may write
//! to its own entries: CUDA names its threads by `/proc/self/task/*/comm`, and does not start if it cannot.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;

/// Writable according to their mode, but writing needs a capability, or affects only the writing process.
const HARMLESS: [&str; 2] = ["mtrr", "pressure"];

/// The directories, and the writable files, that belong to no process.
pub fn kernel_entries(proc: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let is_kernel_entry = |entry: &fs::DirEntry| {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        !is_process && entry.metadata().is_ok_and(|meta| meta.is_dir() || meta.is_file() && is_writable(&meta))
    };
    entries.filter(is_kernel_entry).map(|entry| entry.path()).collect()
}

/// Whether this process, without its capabilities, can change no setting of the kernel through `/proc`: root owns them
/// and needs no capability. In containers they are read-only.
pub fn kernel_is_protected(proc: &Path) -> bool {
    let is_harmless = |path: &Path| HARMLESS.iter().any(|name| path.ends_with(name));
    !geteuid().is_root() || !kernel_entries(proc).iter().any(|path| !is_harmless(path) && has_writable(path))
}

fn has_writable(path: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else { return false };
    if statvfs(path).is_ok_and(|mount| mount.flags().contains(FsFlags::ST_RDONLY)) {
        return false;
    }
    if meta.is_dir() {
        return fs::read_dir(path).into_iter().flatten().flatten().any(|entry| has_writable(&entry.path()));
    }
    meta.is_file() && is_writable(&meta)
}

fn is_writable(meta: &fs::Metadata) -> bool {
    meta.permissions().mode() & 0o222 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_global_proc_files_are_protected() -> std::io::Result<()> {
        let proc = tempfile::tempdir()?;
        let file = |name: &str, mode| {
            let path = proc.path().join(name);
            fs::write(&path, "").and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
        };
        for dir in ["1", "42", "sys", "driver"] {
            fs::create_dir(proc.path().join(dir))?;
        }
        std::os::unix::fs::symlink("42", proc.path().join("self"))?;
        file("sysrq-trigger", 0o200)?;
        file("cpuinfo", 0o444)?;
        let mut found: Vec<_> =
            kernel_entries(proc.path()).iter().map(|path| path.file_name().unwrap_or_default().to_owned()).collect();
        found.sort();
        assert_eq!(found, ["driver", "sys", "sysrq-trigger"]);
        file("sys/core_pattern", 0o444)?;
        assert!(!has_writable(&proc.path().join("sys")));
        file("sys/core_pattern", 0o644)?;
        assert!(has_writable(&proc.path().join("sys")));
        Ok(())
    }
}
