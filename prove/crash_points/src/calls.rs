//! Reads the arguments of a system call: memory, descriptors and paths of the thread that makes it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use nix::libc;

use crate::tracer::Call;

impl Call {
    /// An argument as a descriptor.
    pub fn descriptor(&self, index: usize) -> i32 {
        self.int(index)
    }

    /// An argument as `int`, of which registers have the lower half.
    pub fn int(&self, index: usize) -> i32 {
        i32::from_ne_bytes(self.arguments[index].to_ne_bytes()[..4].try_into().expect("four bytes"))
    }

    /// The bytes at an address.
    pub fn memory(&self, address: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length)?];
        self.open_memory()?.read_exact_at(&mut bytes, address).context("memory of the program")?;
        Ok(bytes)
    }

    fn open_memory(&self) -> io::Result<File> {
        File::open(format!("/proc/{}/mem", self.thread))
    }

    /// The bytes of an array of `iovec`.
    pub fn vector(&self, address: u64, count: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for part in self.memory(address, count * 16)?.chunks_exact(16) {
            let number =
                |range: std::ops::Range<usize>| u64::from_ne_bytes(part[range].try_into().expect("eight bytes"));
            bytes.extend(self.memory(number(0..8), number(8..16))?);
        }
        Ok(bytes)
    }

    /// The bytes that a call writes.
    pub fn written_bytes(&self) -> Result<Vec<u8>> {
        let [_, address, length, ..] = self.arguments;
        match self.number {
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => self.vector(address, length),
            libc::SYS_sendmsg => {
                // `msghdr`: the address of the vector is its third word, and the number of its parts the fourth.
                let header = self.memory(address, 32)?;
                let word = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("eight bytes"));
                self.vector(word(16), word(24))
            }
            _ => self.memory(address, length),
        }
    }

    /// The path that two arguments name: a descriptor of a directory, and a text.
    pub fn path_at(&self, directory: usize, text: usize) -> Result<PathBuf> {
        self.resolve(self.descriptor(directory), self.arguments[text])
    }

    /// The path that an argument names.
    pub fn path(&self, text: usize) -> Result<PathBuf> {
        self.resolve(libc::AT_FDCWD, self.arguments[text])
    }

    fn resolve(&self, directory: i32, address: u64) -> Result<PathBuf> {
        let text = self.text(address)?;
        let base = match directory {
            _ if text.is_absolute() => PathBuf::new(),
            libc::AT_FDCWD => fs::read_link(format!("/proc/{}/cwd", self.thread))?,
            descriptor => self.target(descriptor)?,
        };
        Ok(normalize(&base.join(text)))
    }

    fn text(&self, address: u64) -> Result<PathBuf> {
        let memory = self.open_memory()?;
        let mut text = Vec::new();
        let mut page = [0; 256];
        loop {
            let length = memory.read_at(&mut page, address + text.len() as u64).context("a path of the program")?;
            let end = page[..length].iter().position(|byte| *byte == 0);
            text.extend_from_slice(&page[..end.unwrap_or(length)]);
            if end.is_some() || length == 0 {
                return Ok(std::ffi::OsString::from_vec(text).into());
            }
        }
    }

    /// Whether its thread sees the same files as this process.
    pub fn shares_mounts(&self) -> bool {
        let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
        mounts(&self.thread.to_string()) == mounts("self")
    }

    /// What a descriptor refers to, as `/proc` shows it.
    pub fn target(&self, descriptor: i32) -> Result<PathBuf> {
        Ok(fs::read_link(self.link(descriptor))?)
    }

    pub fn metadata(&self, descriptor: i32) -> Result<Metadata> {
        Ok(fs::metadata(self.link(descriptor))?)
    }

    /// A descriptor's position, and whether it appends.
    pub fn position(&self, descriptor: i32) -> Result<(u64, bool)> {
        let text = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.thread))?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let flags = i32::from_str_radix(field("flags:").context("flags")?, 8)?;
        Ok((field("pos:").context("a position")?.parse()?, flags & libc::O_APPEND != 0))
    }

    fn link(&self, descriptor: i32) -> String {
        format!("/proc/{}/fd/{descriptor}", self.thread)
    }
}

fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            component => normal.push(component),
        }
    }
    normal
}
