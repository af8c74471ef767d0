//! What a program does to a file system, as far as a crash can tell the difference.

use std::path::{Path, PathBuf};

/// A file, whatever its names are.
pub type FileId = usize;

/// One change, in the order in which the kernel made them. Paths are relative to the recorded directory.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A new file with this name.
    Create {
        path: PathBuf,
        file: FileId,
        mode: u32,
    },
    CreateDirectory {
        path: PathBuf,
        mode: u32,
    },
    Write {
        file: FileId,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// A new length: shorter, or longer with zeros.
    Resize {
        file: FileId,
        length: u64,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    /// Another name of a file.
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    /// Removes a name of a file, or a directory.
    Remove {
        path: PathBuf,
    },
    SetMode {
        path: PathBuf,
        mode: u32,
    },
    /// `fsync`, or `fdatasync` if only data and what is needed to read it are flushed.
    Flush {
        file: FileId,
        only_data: bool,
    },
    FlushDirectory {
        path: PathBuf,
    },
}

impl Operation {
    /// The path that it changes; `name` returns the name of a file.
    pub fn path<'a>(&'a self, name: impl Fn(FileId) -> &'a Path) -> &'a Path {
        match self {
            Self::Create { path, .. }
            | Self::CreateDirectory { path, .. }
            | Self::Remove { path }
            | Self::SetMode { path, .. }
            | Self::FlushDirectory { path } => path,
            Self::Write { file, .. } | Self::Resize { file, .. } | Self::Flush { file, .. } => name(*file),
            Self::Rename { to, .. } | Self::Link { to, .. } => to,
        }
    }

    /// A line for a report; `name` returns the name of a file.
    pub fn describe<'a>(&self, name: impl Fn(FileId) -> &'a Path) -> String {
        match self {
            Self::Create { path, mode, .. } => format!("create {} (mode {mode:o})", path.display()),
            Self::CreateDirectory { path, .. } => format!("create directory {}", path.display()),
            Self::Write { file, offset, bytes } => {
                format!("write {} bytes at {offset} of {}", bytes.len(), name(*file).display())
            }
            Self::Resize { file, length } => format!("resize {} to {length}", name(*file).display()),
            Self::Rename { from, to } => format!("rename {} to {}", from.display(), to.display()),
            Self::Link { from, to } => format!("link {} to {}", from.display(), to.display()),
            Self::Remove { path } => format!("remove {}", path.display()),
            Self::SetMode { path, mode } => format!("set mode {mode:o} of {}", path.display()),
            Self::Flush { file, only_data: true } => format!("flush data of {}", name(*file).display()),
            Self::Flush { file, only_data: false } => format!("flush {}", name(*file).display()),
            Self::FlushDirectory { path } => format!("flush directory {}", path.display()),
        }
    }
}
