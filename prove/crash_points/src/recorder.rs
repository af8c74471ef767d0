//! Records the changes that a traced program makes below a directory, and when it sent its responses.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use nix::libc;
use nix::unistd::Pid;

use crate::operation::{FileId, Operation};
use crate::recording::SharedRecording;
use crate::tracer::{Call, Decision, Observer};
use crate::watched::WATCHED;

/// Replaces a part of a file by zeros.
const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
/// The header by which a response names its request.
const REQUEST_ID: &[u8] = b"x-request-id: ";

/// A call that has begun.
enum Begun {
    Open {
        existed: bool,
        truncates: bool,
    },
    /// Its bytes are those that were written.
    Write {
        file: FileId,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// Happens completely if the call succeeds.
    Whole(Operation),
    CreateDirectory(PathBuf),
}

pub struct Recorder {
    root: PathBuf,
    recording: SharedRecording,
    begun: HashMap<Pid, Begun>,
}

impl Recorder {
    /// Records changes below `root`, an absolute path without symbolic links.
    pub fn new(root: &Path, recording: &SharedRecording) -> Self {
        Self { root: root.to_owned(), recording: recording.clone(), begun: HashMap::new() }
    }

    fn inside(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.root).ok().map(Path::to_owned)
    }

    /// The recorded file of a descriptor; `None` outside of the directory.
    fn file(&self, call: &Call, descriptor: i32) -> Result<Option<FileId>> {
        let Ok(target) = call.target(descriptor) else { return Ok(None) };
        if self.inside(&target).is_none() {
            return Ok(None);
        }
        let metadata = call.metadata(descriptor)?;
        if !metadata.is_file() {
            return Ok(None);
        }
        match self.recording.lock().inodes.get(&metadata.ino()) {
            Some(file) => Ok(Some(*file)),
            None => bail!("a file was not recorded from its begin: {}", target.display()),
        }
    }

    /// How the call changes the directory; `None` if it does not.
    fn begin(&self, call: &Call) -> Result<Option<Begun>> {
        Ok(match call.number {
            libc::SYS_open => self.open(&call.path(0)?, call.int(1)),
            libc::SYS_creat => self.open(&call.path(0)?, libc::O_CREAT | libc::O_TRUNC),
            libc::SYS_openat => self.open(&call.path_at(0, 1)?, call.int(2)),
            libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                self.write(call)?
            }
            libc::SYS_sendto | libc::SYS_sendmsg => {
                self.sent(call)?;
                None
            }
            libc::SYS_fsync | libc::SYS_fdatasync => self.flush(call)?,
            libc::SYS_ftruncate => {
                let file = self.file(call, call.descriptor(0))?;
                file.map(|file| Begun::Whole(Operation::Resize { file, length: call.arguments[1] }))
            }
            libc::SYS_fallocate => self.allocate(call)?,
            libc::SYS_mkdir => self.inside(&call.path(0)?).map(Begun::CreateDirectory),
            libc::SYS_mkdirat => self.inside(&call.path_at(0, 1)?).map(Begun::CreateDirectory),
            libc::SYS_unlink | libc::SYS_rmdir => self.remove(&call.path(0)?),
            libc::SYS_unlinkat => self.remove(&call.path_at(0, 1)?),
            libc::SYS_rename => self.rename(&call.path(0)?, &call.path(1)?)?,
            libc::SYS_renameat => self.rename(&call.path_at(0, 1)?, &call.path_at(2, 3)?)?,
            libc::SYS_renameat2 => {
                if call.int(4) & !1 != 0 {
                    bail!("a rename with flags {:x} is not modeled", call.int(4));
                }
                self.rename(&call.path_at(0, 1)?, &call.path_at(2, 3)?)?
            }
            libc::SYS_link => self.link(&call.path(0)?, &call.path(1)?)?,
            libc::SYS_linkat => self.link(&call.path_at(0, 1)?, &call.path_at(2, 3)?)?,
            libc::SYS_chmod => self.set_mode(&call.path(0)?, call.arguments[1]),
            libc::SYS_fchmodat => self.set_mode(&call.path_at(0, 1)?, call.arguments[2]),
            libc::SYS_fchmod => match call.target(call.descriptor(0)) {
                Ok(target) => self.set_mode(&target, call.arguments[1]),
                Err(_) => None,
            },
            libc::SYS_mmap => {
                self.map(call)?;
                None
            }
            _ => {
                self.refuse(call)?;
                None
            }
        })
    }

    fn open(&self, path: &Path, flags: i32) -> Option<Begun> {
        let changes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0 && flags & libc::O_TMPFILE != libc::O_TMPFILE;
        self.inside(path).filter(|_| changes)?;
        Some(Begun::Open { existed: path.exists(), truncates: flags & libc::O_TRUNC != 0 })
    }

    fn write(&self, call: &Call) -> Result<Option<Begun>> {
        let descriptor = call.descriptor(0);
        let Some(file) = self.file(call, descriptor)? else {
            self.sent(call)?;
            return Ok(None);
        };
        let (position, appends) = call.position(descriptor)?;
        let positioned = !matches!(call.number, libc::SYS_write | libc::SYS_writev);
        let offset = match (appends, positioned) {
            (true, _) => call.metadata(descriptor)?.len(),
            (false, true) => call.arguments[3],
            (false, false) => position,
        };
        Ok(Some(Begun::Write { file, offset, bytes: call.written_bytes()? }))
    }

    /// Remembers when a response was sent.
    fn sent(&self, call: &Call) -> Result<()> {
        if !call.target(call.descriptor(0)).is_ok_and(|target| target.to_string_lossy().starts_with("socket:")) {
            return Ok(());
        }
        let bytes = call.written_bytes()?;
        if let Some(start) = bytes.windows(REQUEST_ID.len()).position(|window| window == REQUEST_ID) {
            let id = bytes[start + REQUEST_ID.len()..].split(|byte| *byte == b'\r').next().unwrap_or_default();
            let mut recording = self.recording.lock();
            let position = recording.operations.len();
            recording.responses.entry(String::from_utf8_lossy(id).into_owned()).or_insert(position);
        }
        Ok(())
    }

    fn flush(&self, call: &Call) -> Result<Option<Begun>> {
        let Ok(target) = call.target(call.descriptor(0)) else { return Ok(None) };
        let Some(path) = self.inside(&target) else { return Ok(None) };
        if call.metadata(call.descriptor(0))?.is_dir() {
            return Ok(Some(Begun::Whole(Operation::FlushDirectory { path })));
        }
        let only_data = call.number == libc::SYS_fdatasync;
        Ok(self.file(call, call.descriptor(0))?.map(|file| Begun::Whole(Operation::Flush { file, only_data })))
    }

    fn allocate(&self, call: &Call) -> Result<Option<Begun>> {
        let Some(file) = self.file(call, call.descriptor(0))? else { return Ok(None) };
        let (offset, end) = (call.arguments[2], call.arguments[2] + call.arguments[3]);
        let length = call.metadata(call.descriptor(0))?.len();
        Ok(match call.int(1) {
            0 => Some(Begun::Whole(Operation::Resize { file, length: length.max(end) })),
            PUNCH_HOLE if offset < length => {
                let bytes = vec![0; usize::try_from(end.min(length) - offset)?];
                Some(Begun::Whole(Operation::Write { file, offset, bytes }))
            }
            PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE => None,
            mode => bail!("fallocate with mode {mode:x} is not modeled"),
        })
    }

    fn remove(&self, path: &Path) -> Option<Begun> {
        self.inside(path).map(|path| Begun::Whole(Operation::Remove { path }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<Option<Begun>> {
        Ok(match (self.inside(from), self.inside(to)) {
            (None, None) => None,
            (Some(from), Some(to)) => Some(Begun::Whole(Operation::Rename { from, to })),
            _ => bail!("a rename across the directory's border: {} to {}", from.display(), to.display()),
        })
    }

    fn link(&self, from: &Path, to: &Path) -> Result<Option<Begun>> {
        Ok(match (self.inside(from), self.inside(to)) {
            (None, None) => None,
            (Some(from), Some(to)) => Some(Begun::Whole(Operation::Link { from, to })),
            _ => bail!("a link across the directory's border: {} to {}", from.display(), to.display()),
        })
    }

    fn set_mode(&self, path: &Path, mode: u64) -> Option<Begun> {
        let mode = u32::try_from(mode & 0o7777).expect("twelve bits");
        self.inside(path).map(|path| Begun::Whole(Operation::SetMode { path, mode }))
    }

    /// The index of SQLite's log is rebuilt by the first process that opens the database; other files are not written
    /// through memory.
    fn map(&self, call: &Call) -> Result<()> {
        let writes = call.int(2) & libc::PROT_WRITE != 0 && call.int(3) & libc::MAP_SHARED != 0;
        let anonymous = call.int(3) & libc::MAP_ANONYMOUS != 0;
        if writes
            && !anonymous
            && let Ok(target) = call.target(call.descriptor(4))
            && self.inside(&target).is_some_and(|path| !is_index(&path))
        {
            bail!("{} is written through memory, which is not modeled", target.display());
        }
        Ok(())
    }

    /// Calls that would make the recording incomplete.
    fn refuse(&self, call: &Call) -> Result<()> {
        let target = match call.number {
            libc::SYS_io_uring_setup => bail!("io_uring is not modeled"),
            libc::SYS_truncate | libc::SYS_symlink => Some(call.path(usize::from(call.number == libc::SYS_symlink))?),
            libc::SYS_symlinkat => Some(call.path_at(1, 2)?),
            libc::SYS_sendfile => call.target(call.descriptor(0)).ok(),
            libc::SYS_copy_file_range | libc::SYS_splice => call.target(call.descriptor(2)).ok(),
            _ => None,
        };
        match target.and_then(|path| self.inside(&path)) {
            Some(path) => bail!("system call {} on {} is not modeled", call.number, path.display()),
            None => Ok(()),
        }
    }

    /// A file was opened that was created or truncated.
    fn opened(&self, call: &Call, descriptor: i32, existed: bool, truncates: bool) -> Result<()> {
        let (target, metadata) = (call.target(descriptor)?, call.metadata(descriptor)?);
        let mut recording = self.recording.lock();
        let Some(path) = self.inside(&target).filter(|_| metadata.is_file()) else { return Ok(()) };
        if !existed {
            let file = recording.files;
            recording.files += 1;
            recording.inodes.insert(metadata.ino(), file);
            let mode = metadata.permissions().mode() & 0o7777;
            recording.operations.push(Operation::Create { path, file, mode });
        } else if truncates {
            let Some(file) = recording.inodes.get(&metadata.ino()).copied() else {
                bail!("a file was not recorded from its begin: {}", target.display())
            };
            recording.operations.push(Operation::Resize { file, length: 0 });
        }
        Ok(())
    }
}

impl Observer for Recorder {
    fn enter(&mut self, call: &Call) -> Result<Decision> {
        // An agent that tries what a sandbox can do sees other files under the same paths.
        if !call.shares_mounts() {
            return Ok(Decision::Ignore);
        }
        match self.begin(call)? {
            Some(begun) => {
                self.begun.insert(call.thread, begun);
                Ok(Decision::Alone)
            }
            None => Ok(Decision::Ignore),
        }
    }

    fn is_watched(&self, number: i64) -> bool {
        WATCHED.contains(&number)
    }

    fn leave(&mut self, call: &Call, result: i64) -> Result<()> {
        let Some(begun) = self.begun.remove(&call.thread) else { return Ok(()) };
        let Ok(result) = u64::try_from(result) else { return Ok(()) };
        let operation = match begun {
            Begun::Open { existed, truncates } => {
                return self.opened(call, i32::try_from(result)?, existed, truncates);
            }
            Begun::Write { file, offset, mut bytes } => {
                bytes.truncate(usize::try_from(result)?);
                Operation::Write { file, offset, bytes }
            }
            Begun::CreateDirectory(path) => {
                let mode = fs::metadata(self.root.join(&path))?.permissions().mode() & 0o7777;
                Operation::CreateDirectory { path, mode }
            }
            Begun::Whole(operation) => operation,
        };
        self.recording.lock().operations.push(operation);
        Ok(())
    }
}

/// Whether a file is the index of SQLite's log.
pub fn is_index(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-shm")
}
