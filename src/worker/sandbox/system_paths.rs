//! What every trainer may read on its host: programs, libraries and their settings, but no files of the host's owner.

use std::path::{Path, PathBuf};

/// Programs and libraries, and the kernel's description of the hardware.
const READABLE_DIRS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    // NixOS and Guix.
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/run/opengl-driver",
    // Topology of GPUs, network cards and memory, for NCCL and CUDA.
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices",
    "/sys/kernel/mm",
    "/sys/module",
];

/// Names in `/etc`: others may contain the owner's secrets.
const READABLE_ETC: &[&str] = &[
    "alternatives",
    "amd",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "libibverbs.d",
    "libnl",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "mime.types",
    "nccl.conf",
    "nsswitch.conf",
    "nvidia",
    "nvidia-container-runtime",
    "OpenCL",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "protocols",
    "python3",
    "rdma",
    "resolv.conf",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "static",
    "terminfo",
    "timezone",
    "vulkan",
];

/// Those that exist.
pub fn existing_paths() -> Vec<PathBuf> {
    let settings = READABLE_ETC.iter().map(|name| Path::new("/etc").join(name));
    let all = READABLE_DIRS.iter().map(PathBuf::from).chain(settings);
    // Root-level links stay links; their targets are listed themselves.
    all.filter(|path| path.exists() && !is_root_link(path)).collect()
}

/// `/bin` and similar, where they link to `/usr`.
fn is_root_link(path: &Path) -> bool {
    path.components().count() == 2 && path.is_symlink()
}
