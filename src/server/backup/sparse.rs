//! Sparse files, such as logs with gaps: holes take no space in a backup or after a restore. In an archive they are
//! sparse entries in the old GNU format, which every `tar` reads.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use tar::{Builder, EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};

/// Ranges of a file begin and end at multiples of this, except at its end; archives require 512.
const BLOCK_SIZE: u64 = 4_096;

/// Writes a file sequentially. Zeros are not written and become holes.
pub struct SparseWriter {
    file: File,
    length: u64,
}

impl SparseWriter {
    /// Creates a writer for this empty file.
    pub fn new(file: File) -> Self {
        Self { file, length: 0 }
    }

    /// Finishes the file and syncs it to disk.
    pub fn finish(self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.sync_all()
    }
}

impl Write for SparseWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if bytes.iter().all(|byte| *byte == 0) {
            self.file.seek_relative(i64::try_from(bytes.len()).unwrap_or_default())?;
            bytes.len()
        } else {
            self.file.write(bytes)?
        };
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the ranges of a file that contain data, in order; the whole file if the file system cannot tell.
pub fn data_ranges(file: &mut File, size: u64) -> io::Result<Vec<(u64, u64)>> {
    let (mut ranges, mut position) = (Vec::<(u64, u64)>::new(), 0);
    while position < size {
        let Some(from) = seek(file, position, Whence::SeekData)? else { break };
        let to = seek(file, from, Whence::SeekHole)?.unwrap_or(size);
        let (from, to) = (from / BLOCK_SIZE * BLOCK_SIZE, to.next_multiple_of(BLOCK_SIZE).min(size));
        match ranges.last_mut() {
            Some(last) if last.1 >= from => last.1 = to,
            _ if from < to => ranges.push((from, to)),
            _ => {}
        }
        position = to.max(position + 1);
    }
    file.rewind()?;
    Ok(ranges)
}

fn seek(file: &File, position: u64, whence: Whence) -> io::Result<Option<u64>> {
    let position = i64::try_from(position).map_err(io::Error::other)?;
    match (lseek(file, position, whence), whence) {
        (Ok(offset), _) => Ok(Some(offset.unsigned_abs())),
        // A file system without holes: the whole file is data.
        (Err(Errno::EINVAL | Errno::EOPNOTSUPP), Whence::SeekData) => Ok(Some(position.unsigned_abs())),
        // No further data.
        (Err(Errno::ENXIO | Errno::EINVAL | Errno::EOPNOTSUPP), _) => Ok(None),
        (Err(error), _) => Err(error.into()),
    }
}

/// Appends a file of this size with data in these ranges only.
pub fn append_sparse(
    archive: &mut Builder<File>,
    name: &str,
    size: u64,
    file: &mut File,
    ranges: &[(u64, u64)],
) -> io::Result<()> {
    let mut map: Vec<(u64, u64)> = ranges.iter().map(|(from, to)| (*from, to - from)).collect();
    if ranges.last().is_none_or(|(_, end)| *end < size) {
        map.push((size, 0));
    }
    let mut header = Header::new_gnu();
    header.set_size(ranges.iter().map(|(from, to)| to - from).sum());
    header.set_mode(0o600);
    header.set_entry_type(EntryType::GNUSparse);
    let gnu = header.as_gnu_mut().ok_or_else(|| io::Error::other("the archive has other headers"))?;
    gnu.set_real_size(size);
    let rest = map.split_off(map.len().min(gnu.sparse.len()));
    write_map(&mut gnu.sparse, &map);
    gnu.set_is_extended(!rest.is_empty());
    // After the header: the rest of the map in whole blocks, then the data.
    let mut extension_blocks = Vec::new();
    let mut unwritten = rest.as_slice();
    while !unwritten.is_empty() {
        let mut block = GnuExtSparseHeader::new();
        let (entries, remaining) = unwritten.split_at(unwritten.len().min(block.sparse.len()));
        write_map(&mut block.sparse, entries);
        block.set_is_extended(!remaining.is_empty());
        extension_blocks.extend_from_slice(block.as_bytes());
        unwritten = remaining;
    }
    let mut content: Box<dyn Read + '_> = Box::new(io::Cursor::new(extension_blocks));
    for range in ranges {
        content = Box::new(content.chain(RangeReader { file: &*file, position: range.0, end: range.1 }));
    }
    archive.append_data(&mut header, name, content)
}

fn write_map(entries: &mut [GnuSparseHeader], map: &[(u64, u64)]) {
    for (entry, (offset, length)) in entries.iter_mut().zip(map) {
        entry.set_offset(*offset);
        entry.set_length(*length);
    }
}

/// Reads a range of a file.
struct RangeReader<'f> {
    file: &'f File,
    position: u64,
    end: u64,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.position))?;
        let read = self.file.take(self.end - self.position).read(buffer)?;
        if read == 0 && self.position < self.end && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was copied"));
        }
        self.position += read as u64;
        Ok(read)
    }
}
