//! Files with holes, such as logs of which a worker had to drop something: what takes no room on the server takes none in a
//! backup, nor where it is put back. In an archive they are sparse entries in GNU's old format, which every `tar` reads.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use tar::{Builder, EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};

/// Parts of a file begin and end at multiples of this, but for its end; archives need 512.
const ALIGNED: u64 = 4_096;

/// A file that is written from its beginning on. Zeros are not written: they become holes.
pub struct Sparse {
    file: File,
    length: u64,
}

impl Sparse {
    /// Into this file, which is empty.
    pub fn into(file: File) -> Self {
        Self { file, length: 0 }
    }

    /// Ends it. It is on the disk then.
    pub fn finish(self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.sync_all()
    }
}

impl Write for Sparse {
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

/// Where a file has data: from where to where, in order. All of it, where that cannot be told.
pub fn data(file: &mut File, size: u64) -> io::Result<Vec<(u64, u64)>> {
    let (mut parts, mut at) = (Vec::<(u64, u64)>::new(), 0);
    while at < size {
        let Some(from) = find(file, at, Whence::SeekData)? else { break };
        let to = find(file, from, Whence::SeekHole)?.unwrap_or(size);
        let (from, to) = (from / ALIGNED * ALIGNED, to.next_multiple_of(ALIGNED).min(size));
        match parts.last_mut() {
            Some(last) if last.1 >= from => last.1 = to,
            _ if from < to => parts.push((from, to)),
            _ => {}
        }
        at = to.max(at + 1);
    }
    file.rewind()?;
    Ok(parts)
}

fn find(file: &File, at: u64, what: Whence) -> io::Result<Option<u64>> {
    let at = i64::try_from(at).map_err(io::Error::other)?;
    match (lseek(file, at, what), what) {
        (Ok(found), _) => Ok(Some(found.unsigned_abs())),
        // A file system that knows no holes: all is data.
        (Err(Errno::EINVAL | Errno::EOPNOTSUPP), Whence::SeekData) => Ok(Some(at.unsigned_abs())),
        // Nothing of it comes any more.
        (Err(Errno::ENXIO | Errno::EINVAL | Errno::EOPNOTSUPP), _) => Ok(None),
        (Err(error), _) => Err(error.into()),
    }
}

/// Appends a file of this size that has data in these parts only.
pub fn append(
    archive: &mut Builder<File>,
    name: &str,
    size: u64,
    file: &mut File,
    parts: &[(u64, u64)],
) -> io::Result<()> {
    let mut map: Vec<(u64, u64)> = parts.iter().map(|(from, to)| (*from, to - from)).collect();
    if parts.last().is_none_or(|(_, end)| *end < size) {
        map.push((size, 0));
    }
    let mut header = Header::new_gnu();
    header.set_size(parts.iter().map(|(from, to)| to - from).sum());
    header.set_mode(0o600);
    header.set_entry_type(EntryType::GNUSparse);
    let gnu = header.as_gnu_mut().ok_or_else(|| io::Error::other("the archive has other headers"))?;
    gnu.set_real_size(size);
    let rest = map.split_off(map.len().min(gnu.sparse.len()));
    describe(&mut gnu.sparse, &map);
    gnu.set_is_extended(!rest.is_empty());
    // What follows the header: the rest of the map, in whole blocks, and then the data.
    let mut further = Vec::new();
    let mut left = rest.as_slice();
    while !left.is_empty() {
        let mut block = GnuExtSparseHeader::new();
        let (here, further_on) = left.split_at(left.len().min(block.sparse.len()));
        describe(&mut block.sparse, here);
        block.set_is_extended(!further_on.is_empty());
        further.extend_from_slice(block.as_bytes());
        left = further_on;
    }
    let mut from: Box<dyn Read + '_> = Box::new(io::Cursor::new(further));
    for part in parts {
        from = Box::new(from.chain(Part { file: &*file, at: part.0, end: part.1 }));
    }
    archive.append_data(&mut header, name, from)
}

fn describe(places: &mut [GnuSparseHeader], map: &[(u64, u64)]) {
    for (place, (offset, length)) in places.iter_mut().zip(map) {
        place.set_offset(*offset);
        place.set_length(*length);
    }
}

/// A part of a file.
struct Part<'f> {
    file: &'f File,
    at: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = self.file.take(self.end - self.at).read(buffer)?;
        if read == 0 && self.at < self.end && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was copied"));
        }
        self.at += read as u64;
        Ok(read)
    }
}
