//! The history as bytes, so that a restarted server knows the last day. A damaged file is ignored: a gap in a chart is
//! no reason not to start.

use app::domain::ids::WorkerId;
use sha2::{Digest, Sha256};

use super::{COARSE, FINE, GpuTrack, History, HistoryCell, MAX_TRACKS, Resolution, Ring};

/// The maximum size of the file: names are short, and the number of GPUs is limited.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// The file type and version.
const MAGIC: &[u8; 8] = b"STGPUH01";
const DIGEST_BYTES: usize = 32;

/// The bytes are not a valid history.
#[derive(Debug, PartialEq, Eq)]
pub struct CorruptHistory;

impl History {
    /// Serializes the header, the GPUs, and a digest.
    pub fn to_bytes(&self) -> Vec<u8> {
        let per_track = (FINE.cells + COARSE.cells) * 8 + 256;
        let mut bytes = Vec::with_capacity(self.track_count() * per_track + 64);
        bytes.extend(MAGIC);
        for (worker, tracks) in &self.workers {
            for track in tracks {
                write_text(&mut bytes, worker.as_str());
                write_text(&mut bytes, &track.uuid);
                write_text(&mut bytes, &track.name);
                bytes.extend(track.index.to_le_bytes());
                bytes.extend(track.vram_gb.unwrap_or(f64::NAN).to_le_bytes());
                write_ring(&mut bytes, &track.fine);
                write_ring(&mut bytes, &track.coarse);
            }
        }
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        bytes
    }

    /// Parses a history.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CorruptHistory> {
        let (body, digest) =
            bytes.len().checked_sub(DIGEST_BYTES).map(|end| bytes.split_at(end)).ok_or(CorruptHistory)?;
        if Sha256::digest(body)[..] != *digest {
            return Err(CorruptHistory);
        }
        let mut reader = ByteReader(body.strip_prefix(MAGIC).ok_or(CorruptHistory)?);
        let mut history = Self::default();
        for _ in 0..MAX_TRACKS {
            if reader.0.is_empty() {
                return Ok(history);
            }
            let worker = WorkerId::parse(&reader.read_text()?).map_err(|_| CorruptHistory)?;
            let (uuid, name) = (reader.read_text()?, reader.read_text()?);
            let index = u32::from_le_bytes(reader.read_array()?);
            let vram_gb = Some(f64::from_le_bytes(reader.read_array()?)).filter(|gb| gb.is_finite());
            let (fine, coarse) = (reader.read_ring(FINE)?, reader.read_ring(COARSE)?);
            history.workers.entry(worker).or_default().push(GpuTrack { uuid, index, name, vram_gb, fine, coarse });
        }
        if reader.0.is_empty() { Ok(history) } else { Err(CorruptHistory) }
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    let text = &text.as_bytes()[..text.floor_char_boundary(usize::from(u16::MAX))];
    bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(text);
}

fn write_ring(bytes: &mut Vec<u8>, ring: &Ring) {
    bytes.extend(ring.newest_index().to_le_bytes());
    for index in ring.oldest_index()..=ring.newest_index() {
        bytes.extend(ring.cell(index).to_bytes());
    }
}

/// The bytes that were not read yet.
struct ByteReader<'a>(&'a [u8]);

impl ByteReader<'_> {
    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], CorruptHistory> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(CorruptHistory)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn read_text(&mut self) -> Result<String, CorruptHistory> {
        let length = usize::from(u16::from_le_bytes(self.read_array()?));
        let (text, rest) = self.0.split_at_checked(length).ok_or(CorruptHistory)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| CorruptHistory)
    }

    fn read_ring(&mut self, resolution: Resolution) -> Result<Ring, CorruptHistory> {
        let newest = i64::from_le_bytes(self.read_array()?);
        // Implausible numbers would overflow later computations.
        if !(i64::MIN / 2..i64::MAX / 2).contains(&newest) {
            return Err(CorruptHistory);
        }
        let cells = (0..resolution.cells)
            .map(|_| self.read_array().map(HistoryCell::from_bytes))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Ring::from_cells(resolution, newest, cells.into_iter()))
    }
}
