//! The bytes of a zip archive around the files in it (APPNOTE.TXT 6.3.10), so that it can be streamed: files are stored
//! as they are, each is followed by its checksum, and the length of the whole is known before.

use app::domain::time::Timestamp;
use crc::{CRC_32_ISO_HDLC, Crc, Digest, Table};

/// The checksum of files in an archive.
static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

pub type Checksum = Digest<'static, u32, Table<16>>;

pub fn checksum() -> Checksum {
    CRC.digest()
}

/// The name is in UTF-8, and the checksum follows the file.
const FLAGS: u16 = 1 << 11 | 1 << 3;
/// What a reader must support: directories, and files above 4 GiB.
const VERSION: u16 = 20;
const ZIP64_VERSION: u16 = 45;
/// Made on Unix; the attributes are a mode.
const MADE_BY: u16 = 3 << 8 | ZIP64_VERSION;
const REGULAR_FILE: u32 = 0o100_644 << 16;
/// The kind of the field with numbers that do not fit where they belong.
const ZIP64_FIELD: u16 = 1;
/// What stands in their place.
const ELSEWHERE: u32 = u32::MAX;

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Its plain path.
    pub path: String,
    pub size: u64,
    pub modified: Timestamp,
}

impl ZipEntry {
    /// Returns the bytes before a file.
    pub fn header(&self) -> Vec<u8> {
        let mut header = Record::new(*b"PK\x03\x04");
        if is_large(self.size) {
            let zip64 = Record::field(ZIP64_FIELD, &[0, 0]);
            header
                .u16(ZIP64_VERSION)
                .common(self, 0, [ELSEWHERE; 2], &zip64)
                .bytes(self.path.as_bytes())
                .bytes(&zip64.0);
        } else {
            header.u16(VERSION).common(self, 0, [0; 2], &Record::default()).bytes(self.path.as_bytes());
        }
        header.0
    }
}

/// Writes what follows the files.
#[derive(Debug, Default)]
pub struct ZipWriter {
    /// How many bytes were written, with the files.
    offset: u64,
    directory: Vec<u8>,
    entries: u64,
}

impl ZipWriter {
    /// Returns the bytes after a file, whose checksum is known now.
    pub fn end(&mut self, entry: &ZipEntry, crc: u32) -> Vec<u8> {
        let mut descriptor = Record::new(*b"PK\x07\x08");
        descriptor.u32(crc);
        match u32::try_from(entry.size) {
            Ok(size) if size < ELSEWHERE => descriptor.u32(size).u32(size),
            _ => descriptor.u64(entry.size).u64(entry.size),
        };
        self.list(entry, crc);
        self.offset += entry.header().len() as u64 + entry.size + descriptor.0.len() as u64;
        descriptor.0
    }

    /// Adds the file to the directory at the end.
    fn list(&mut self, entry: &ZipEntry, crc: u32) {
        let (size, offset) = (small(entry.size), small(self.offset));
        let sizes = [entry.size; 2].into_iter().filter(|_| size == ELSEWHERE);
        let elsewhere: Vec<u64> = sizes.chain([self.offset].into_iter().filter(|_| offset == ELSEWHERE)).collect();
        let zip64 = if elsewhere.is_empty() { Record::default() } else { Record::field(ZIP64_FIELD, &elsewhere) };
        let mut listed = Record::new(*b"PK\x01\x02");
        listed.u16(MADE_BY).u16(if elsewhere.is_empty() { VERSION } else { ZIP64_VERSION });
        listed.common(entry, crc, [size; 2], &zip64);
        // No comment, the first disk, no internal attributes.
        listed.u16(0).u16(0).u16(0).u32(REGULAR_FILE).u32(offset).bytes(entry.path.as_bytes()).bytes(&zip64.0);
        self.directory.extend(listed.0);
        self.entries += 1;
    }

    /// Returns the bytes after the last file.
    pub fn finish(self) -> Vec<u8> {
        let (start, length) = (self.offset, self.directory.len() as u64);
        let entries = u16::try_from(self.entries).unwrap_or(u16::MAX);
        let mut end = Record(self.directory);
        if entries == u16::MAX || is_large(start) || is_large(length) {
            // The length of the rest of this record; one disk.
            end.bytes(b"PK\x06\x06").u64(44).u16(MADE_BY).u16(ZIP64_VERSION).u32(0).u32(0);
            end.u64(self.entries).u64(self.entries).u64(length).u64(start);
            end.bytes(b"PK\x06\x07").u32(0).u64(start + length).u32(1);
        }
        end.bytes(b"PK\x05\x06").u16(0).u16(0).u16(entries).u16(entries).u32(small(length)).u32(small(start)).u16(0);
        end.0
    }
}

/// Returns the length of an archive with these files.
pub fn archive_length(entries: impl IntoIterator<Item = ZipEntry>) -> u64 {
    let mut zip = ZipWriter::default();
    for entry in entries {
        zip.end(&entry, 0);
    }
    zip.offset + zip.finish().len() as u64
}

fn is_large(number: u64) -> bool {
    number >= u64::from(ELSEWHERE)
}

/// Returns the number, or that it is in the field for large ones.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(ELSEWHERE)
}

/// Date and time as MS-DOS has them, from 1980 on, in steps of two seconds.
fn dos_time(modified: Timestamp) -> (u16, u16) {
    let ([year, month, day], [hour, minute, second]) = modified.to_civil();
    let date = match year {
        ..1980 => 1 << 5 | 1,
        1980..=2107 => (year - 1980) << 9 | month << 5 | day,
        2108.. => 127 << 9 | 12 << 5 | 31,
    };
    let bits = |number: i64| u16::try_from(number).unwrap_or_default();
    (bits(date), bits(hour << 11 | minute << 5 | (second / 2)))
}

/// Little-endian numbers, one after the other.
#[derive(Debug, Default)]
struct Record(Vec<u8>);

impl Record {
    fn new(signature: [u8; 4]) -> Self {
        Self(signature.to_vec())
    }

    /// An additional field of an entry.
    fn field(kind: u16, numbers: &[u64]) -> Self {
        let mut field = Self::default();
        field.u16(kind).u16(length(size_of_val(numbers)));
        for number in numbers {
            field.u64(*number);
        }
        field
    }

    /// What the header before a file and its entry in the directory have in common.
    fn common(&mut self, entry: &ZipEntry, crc: u32, [stored, size]: [u32; 2], extra: &Self) -> &mut Self {
        let (date, time) = dos_time(entry.modified);
        // Not compressed.
        self.u16(FLAGS).u16(0).u16(time).u16(date).u32(crc).u32(stored).u32(size);
        self.u16(length(entry.path.len())).u16(length(extra.0.len()))
    }

    fn u16(&mut self, number: u16) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Paths have at most 512 bytes, and the additional fields 28.
fn length(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("a short field")
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek, SeekFrom, Write};
    use std::path::Path;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    const MODIFIED: Timestamp = Timestamp(1_705_314_601_000);

    fn entry(path: &str, size: u64) -> ZipEntry {
        ZipEntry { path: path.to_owned(), size, modified: MODIFIED }
    }

    fn crc(bytes: &[u8]) -> u32 {
        let mut digest = checksum();
        digest.update(bytes);
        digest.finalize()
    }

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut zip, mut archive) = (ZipWriter::default(), Vec::new());
        for (path, bytes) in files {
            let entry = entry(path, bytes.len() as u64);
            archive.extend(entry.header());
            archive.extend_from_slice(bytes);
            archive.extend(zip.end(&entry, crc(bytes)));
        }
        archive.extend(zip.finish());
        archive
    }

    /// What Python's `zipfile` prints for an archive; it reads the directory, and here also the files and their checksums.
    fn python(archive: &Path, program: &str) -> String {
        let program = format!("import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n{program}");
        let output = Command::new("python3").args(["-c", &program]).arg(archive).output().expect("python3");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn another_implementation_reads_the_archive() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.zip");
        let files: [(&str, &[u8]); 3] = [("a b/ü.txt", "größer\n".as_bytes()), ("empty", b""), ("c", &[7; 3_000])];
        std::fs::write(&file, archive(&files)).expect("written");
        let program = "assert z.testzip() is None\nfor i in z.infolist():\n    \
                       print(i.filename, len(z.read(i)), i.date_time, oct(i.external_attr >> 16), i.compress_type)";
        let expected = "a b/ü.txt 9 (2024, 1, 15, 10, 30, 0) 0o100644 0\n\
                        empty 0 (2024, 1, 15, 10, 30, 0) 0o100644 0\n\
                        c 3000 (2024, 1, 15, 10, 30, 0) 0o100644 0\n";
        assert_eq!(python(&file, program), expected);
        std::fs::write(&file, archive(&[])).expect("written");
        assert_eq!(python(&file, "print(z.namelist())"), "[]\n");
    }

    #[test]
    fn files_above_4_gib_and_those_behind_them_are_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("large.zip");
        let mut file = File::create(&path).expect("created");
        let entries =
            [entry("small", 5), entry("large", 5 << 30), entry("limit", u64::from(u32::MAX)), entry("last", 5)];
        let mut zip = ZipWriter::default();
        for entry in &entries {
            file.write_all(&entry.header()).expect("written");
            if entry.size == 5 {
                file.write_all(b"12345").expect("written");
            } else {
                // A hole, which takes no space.
                file.seek(SeekFrom::Current(i64::try_from(entry.size).expect("a size"))).expect("moved");
            }
            file.write_all(&zip.end(entry, crc(b"12345"))).expect("written");
        }
        file.write_all(&zip.finish()).expect("written");
        assert_eq!(file.metadata().expect("a file").len(), archive_length(entries.clone()));
        let program = "for i in z.infolist():\n    print(i.filename, i.file_size, i.extract_version)\n\
                       print(z.read('small'), z.read('last'), len(z.open('large').read(9)))";
        let expected = "small 5 20\nlarge 5368709120 45\nlimit 4294967295 45\nlast 5 45\nb'12345' b'12345' 9\n";
        assert_eq!(python(&path, program), expected);
    }

    #[test]
    fn more_files_than_a_small_archive_can_have_are_listed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("many.zip");
        let names: Vec<String> = (0..70_000).map(|number| number.to_string()).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
        std::fs::write(&path, archive(&files)).expect("written");
        assert_eq!(python(&path, "print(len(z.namelist()), z.read('69999'))"), "70000 b'x'\n");
    }

    #[test]
    fn times_are_within_those_of_ms_dos() {
        let date_time = |text| dos_time(Timestamp::parse_rfc3339(text).expect("a time"));
        assert_eq!(date_time("1970-01-01T00:00:00Z").0, 1 << 5 | 1);
        assert_eq!(date_time("2024-01-15T10:30:05Z"), (44 << 9 | 1 << 5 | 15, 10 << 11 | 30 << 5 | 2));
        assert_eq!(date_time("3000-01-01T00:00:00Z").0, 127 << 9 | 12 << 5 | 31);
    }

    proptest! {
        #[test]
        fn length_is_known_before(files in proptest::collection::vec(("[a-z/]{1,40}", proptest::collection::vec(any::<u8>(), 0..40)), 0..8)) {
            let entries: Vec<ZipEntry> = files.iter().map(|(path, bytes)| entry(path, bytes.len() as u64)).collect();
            let files: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
            prop_assert_eq!(archive_length(entries), archive(&files).len() as u64);
        }
    }
}
