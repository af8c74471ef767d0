//! What every trainer may read of its host: programs, libraries and their settings, and nothing of its owner's.

use std::path::{Path, PathBuf};

/// Programs and libraries, and what the kernel says of the hardware.
const DIRECTORIES: &[&str] = &[
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

/// Of `/etc` by name: what is not listed may hold the owner's secrets.
const SETTINGS: &[&str] = &[
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

/// Those that are there.
pub fn paths() -> Vec<PathBuf> {
    let settings = SETTINGS.iter().map(|name| Path::new("/etc").join(name));
    let all = DIRECTORIES.iter().map(PathBuf::from).chain(settings);
    // Links of the root stay links; what they lead to is listed itself.
    all.filter(|path| path.exists() && !is_root_link(path)).collect()
}

/// `/bin` and the like, where they lead into `/usr`.
fn is_root_link(path: &Path) -> bool {
    path.components().count() == 2 && path.is_symlink()
}
