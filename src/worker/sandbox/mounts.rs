//! The trainer's mount tree: an empty root with bind mounts of the allowed paths, each at its path on the host.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use super::plan::SandboxPlan;
use super::proc_files::kernel_entries;

/// Every container has these.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Directories of the root that are links into `/usr` on most systems.
const ROOT_LINKS: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
const NONE: Option<&str> = None;

/// Builds the mount tree below `root`, an empty directory, and makes it this process's file system. The process must be
/// the first of its PID namespace and have a separate mount namespace.
///
/// # Errors
/// A message that names the path that cannot be mounted.
pub fn enter_root(plan: &SandboxPlan, root: &Path) -> Result<(), String> {
    // Mounts made here do not reach the host. Later mounts of the host appear here only below the allowed paths.
    with_path(Path::new("/"), mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE))?;
    mount_tmpfs(root, "size=4m,mode=0755")?;
    for (path, binding) in bind_mounts(plan) {
        bind(&path, &binding, root)?;
    }
    for name in ROOT_LINKS {
        link_root_dir(name, root)?;
    }
    mount_devices(plan, root)?;
    let proc = root.join("proc");
    create_dir(&proc)?;
    with_path(&proc, mount(Some("proc"), &proc, Some("proc"), safe_flags() | MsFlags::MS_NOEXEC, NONE))?;
    protect_proc(&proc)?;
    remount_restricted(plan, root)?;
    switch_root(root)
}

/// Makes the kernel's settings read-only: they belong to no namespace, and root of the host could change them without
/// any capability.
fn protect_proc(proc: &Path) -> Result<(), String> {
    for path in kernel_entries(proc) {
        with_path(&path, mount(Some(&path), &path, NONE, MsFlags::MS_BIND, NONE))?;
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOEXEC | safe_flags();
        with_path(&path, mount(NONE, &path, NONE, flags, NONE))?;
    }
    Ok(())
}

/// A path of the host to mount, and the access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BindMount {
    source: PathBuf,
    access: MountAccess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MountAccess {
    Read,
    Write,
    Device,
}

/// The mounts by their path in the trainer's mount tree; a directory comes before the paths in it.
fn bind_mounts(plan: &SandboxPlan) -> Vec<(PathBuf, BindMount)> {
    let with_access = |paths: &[PathBuf], access| -> Vec<(PathBuf, BindMount)> {
        paths.iter().map(|path| (path.clone(), BindMount { source: path.clone(), access })).collect()
    };
    let mut mounts = with_access(&plan.read, MountAccess::Read);
    mounts.extend(with_access(&plan.write, MountAccess::Write));
    mounts.push((PathBuf::from("/tmp"), BindMount { source: plan.tmp.clone(), access: MountAccess::Write }));
    // If a path is listed twice, the later entry counts: the writable one.
    mounts.reverse();
    mounts.sort_by(|(a, _), (b, _)| a.cmp(b));
    mounts.dedup_by(|(a, _), (b, _)| a == b);
    mounts.retain(|(_, binding)| binding.source.exists());
    mounts
}

fn bind(path: &Path, binding: &BindMount, root: &Path) -> Result<(), String> {
    let target = join_root(root, path);
    create_mount_point(&binding.source, &target)?;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    with_path(path, mount(Some(&binding.source), &target, NONE, flags, NONE))
}

/// Remounts every mount with the restrictions of its access; a bind mount has the flags of its source.
fn remount_restricted(plan: &SandboxPlan, root: &Path) -> Result<(), String> {
    let bindings = bind_mounts(plan);
    let mounts =
        fs::read_to_string("/proc/self/mountinfo").map_err(|error| format!("cannot read the mounts: {error}"))?;
    for (point, flags) in mounts.lines().filter_map(parse_mount) {
        let Ok(path) = point.strip_prefix(root) else { continue };
        let path = Path::new("/").join(path);
        let Some(access) = access_for(&path, &bindings) else { continue };
        let added = match access {
            MountAccess::Read => safe_flags() | MsFlags::MS_RDONLY,
            MountAccess::Write => safe_flags(),
            // A read-only mount does not prevent writing to a device; its mode and owner on the host apply.
            MountAccess::Device => MsFlags::MS_NOSUID | MsFlags::MS_RDONLY,
        };
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | flags | added;
        with_path(&path, mount(NONE, &point, NONE, flags, NONE))?;
    }
    // The root itself is read-only too.
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | safe_flags() | MsFlags::MS_RDONLY;
    with_path(Path::new("/"), mount(NONE, root, NONE, flags, NONE))
}

/// The access to a mount: that of the nearest path above it. `None` for mounts that are created here.
fn access_for(mount_point: &Path, bindings: &[(PathBuf, BindMount)]) -> Option<MountAccess> {
    if mount_point.starts_with("/dev") {
        let is_own_device = ["/dev", "/dev/pts", "/dev/shm"].iter().any(|own_path| mount_point == Path::new(own_path));
        return (!is_own_device).then_some(MountAccess::Device);
    }
    let parents = bindings.iter().filter(|(path, _)| mount_point.starts_with(path));
    parents.max_by_key(|(path, _)| path.components().count()).map(|(_, binding)| binding.access)
}

/// The mount point and flags in a line of `/proc/self/mountinfo` (proc(5)). A remount that adds flags must repeat them.
fn parse_mount(line: &str) -> Option<(PathBuf, MsFlags)> {
    let mut fields = line.split(' ');
    let point = unescape(fields.nth(4)?);
    let flags = fields.next()?.split(',').map(|option| match option {
        "ro" => MsFlags::MS_RDONLY,
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    });
    Some((PathBuf::from(point), flags.fold(MsFlags::empty(), MsFlags::union)))
}

/// Spaces and similar characters are written as `\040`.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut unescaped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(code) = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            unescaped.push(char::from(code));
            unescaped.push_str(&part[3..]);
        } else {
            unescaped.push('\\');
            unescaped.push_str(part);
        }
    }
    unescaped
}

fn mount_devices(plan: &SandboxPlan, root: &Path) -> Result<(), String> {
    let dev = root.join("dev");
    create_dir(&dev)?;
    mount_tmpfs(&dev, "size=64k,mode=0755")?;
    let common = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    for device in common.chain(plan.devices.iter().cloned()).filter(|path| path.exists()) {
        bind(&device, &BindMount { source: device.clone(), access: MountAccess::Device }, root)?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, dev.join(name)).map_err(|error| format!("cannot create /dev/{name}: {error}"))?;
    }
    let shm_dir = dev.join("shm");
    create_dir(&shm_dir)?;
    mount_tmpfs(&shm_dir, &format!("size={},mode=1777", plan.shared_memory_bytes))?;
    let pts_dir = dev.join("pts");
    create_dir(&pts_dir)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    with_path(&pts_dir, mount(Some("devpts"), &pts_dir, Some("devpts"), flags, options))
}

/// Creates `/bin` and similar links, as they are on the host.
fn link_root_dir(name: &str, root: &Path) -> Result<(), String> {
    let host_path = Path::new("/").join(name);
    let Ok(target) = fs::read_link(&host_path) else { return Ok(()) };
    let link = root.join(name);
    if link.symlink_metadata().is_ok() {
        return Ok(());
    }
    symlink(target, link).map_err(|error| format!("cannot create {}: {error}", host_path.display()))
}

fn switch_root(root: &Path) -> Result<(), String> {
    with_path(root, chdir(root))?;
    // Mounts the old root over the new one, and unmounts it.
    with_path(root, pivot_root(".", "."))?;
    with_path(root, umount2(".", MntFlags::MNT_DETACH))?;
    with_path(root, chdir("/"))
}

fn mount_tmpfs(target: &Path, options: &str) -> Result<(), String> {
    with_path(target, mount(Some("tmpfs"), target, Some("tmpfs"), safe_flags(), Some(options)))
}

/// Programs there gain no privileges, and device files do not work.
fn safe_flags() -> MsFlags {
    MsFlags::MS_NOSUID | MsFlags::MS_NODEV
}

fn join_root(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Creates a file or a directory, like the source, to mount over.
fn create_mount_point(source: &Path, target: &Path) -> Result<(), String> {
    if source.is_dir() {
        return create_dir(target);
    }
    if target.exists() {
        return Ok(());
    }
    target.parent().map_or(Ok(()), create_dir)?;
    File::create(target).map(drop).map_err(|error| describe_create_error(target, &error))
}

fn create_dir(target: &Path) -> Result<(), String> {
    fs::create_dir_all(target).map_err(|error| describe_create_error(target, &error))
}

fn describe_create_error(target: &Path, error: &io::Error) -> String {
    format!("cannot create {}: {error}", target.display())
}

fn with_path(path: &Path, result: nix::Result<()>) -> Result<(), String> {
    result.map_err(|error| format!("cannot mount {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(read: &[&str], write: &[&str]) -> SandboxPlan {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        SandboxPlan { read: paths(read), write: paths(write), tmp: PathBuf::from("/usr"), ..SandboxPlan::default() }
    }

    #[test]
    fn access_of_the_nearest_parent_applies() {
        let bindings = bind_mounts(&plan(&["/usr", "/", "/usr/bin"], &["/usr/bin", "/nowhere"]));
        let paths: Vec<_> = bindings.iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
        assert_eq!(paths, ["/", "/tmp", "/usr", "/usr/bin"]);
        for (path, expected) in [
            ("/usr", Some(MountAccess::Read)),
            ("/usr/lib/x", Some(MountAccess::Read)),
            ("/usr/bin", Some(MountAccess::Write)),
            ("/usr/bin/x", Some(MountAccess::Write)),
            ("/tmp/x", Some(MountAccess::Write)),
            ("/dev/nvidia0", Some(MountAccess::Device)),
            ("/dev", None),
            ("/dev/shm", None),
        ] {
            assert_eq!(access_for(Path::new(path), &bindings), expected, "{path}");
        }
    }

    #[test]
    fn mountinfo_line_is_parsed() {
        let line = r"36 35 98:0 / /mnt/a\040b\134c ro,nosuid,noexec,relatime shared:1 - ext4 /dev/x rw,errors=continue";
        let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_RELATIME;
        assert_eq!(parse_mount(line), Some((PathBuf::from(r"/mnt/a b\c"), flags)));
        assert_eq!(parse_mount("36 35"), None);
    }
}
