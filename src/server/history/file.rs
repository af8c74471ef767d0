//! A history as bytes, so that a server that starts again knows the day before. Whatever is damaged is nothing: a chart
//! with a gap is no reason not to start.

use app::domain::ids::WorkerId;
use sha2::{Digest, Sha256};

use super::{COARSE, Cell, FINE, Grain, History, MOST_TRACKS, Ring, Track};

/// No file is longer: names are short, and there are only so many GPUs.
pub const LARGEST: u64 = 256 << 20;
/// Says what the file is, and in which form.
const MAGIC: &[u8; 8] = b"STGPUH01";
const DIGEST: usize = 32;

/// Bytes that are no history.
#[derive(Debug, PartialEq, Eq)]
pub struct Damaged;

impl History {
    /// Its bytes: what it is, the GPUs, and a digest of all that.
    pub fn to_bytes(&self) -> Vec<u8> {
        let per_track = (FINE.cells + COARSE.cells) * 8 + 256;
        let mut bytes = Vec::with_capacity(self.tracks() * per_track + 64);
        bytes.extend(MAGIC);
        for (worker, tracks) in &self.workers {
            for track in tracks {
                put_text(&mut bytes, worker.as_str());
                put_text(&mut bytes, &track.uuid);
                put_text(&mut bytes, &track.name);
                bytes.extend(track.index.to_le_bytes());
                bytes.extend(track.vram_gb.unwrap_or(f64::NAN).to_le_bytes());
                put_ring(&mut bytes, &track.fine);
                put_ring(&mut bytes, &track.coarse);
            }
        }
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        bytes
    }

    /// Reads them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        let (body, digest) = bytes.len().checked_sub(DIGEST).map(|end| bytes.split_at(end)).ok_or(Damaged)?;
        if Sha256::digest(body)[..] != *digest {
            return Err(Damaged);
        }
        let mut rest = Rest(body.strip_prefix(MAGIC).ok_or(Damaged)?);
        let mut history = Self::default();
        for _ in 0..MOST_TRACKS {
            if rest.0.is_empty() {
                return Ok(history);
            }
            let worker = WorkerId::parse(&rest.text()?).map_err(|_| Damaged)?;
            let (uuid, name) = (rest.text()?, rest.text()?);
            let index = u32::from_le_bytes(rest.take()?);
            let vram_gb = Some(f64::from_le_bytes(rest.take()?)).filter(|gb| gb.is_finite());
            let (fine, coarse) = (rest.ring(FINE)?, rest.ring(COARSE)?);
            history.workers.entry(worker).or_default().push(Track { uuid, index, name, vram_gb, fine, coarse });
        }
        if rest.0.is_empty() { Ok(history) } else { Err(Damaged) }
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = &text.as_bytes()[..text.floor_char_boundary(usize::from(u16::MAX))];
    bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(text);
}

fn put_ring(bytes: &mut Vec<u8>, ring: &Ring) {
    bytes.extend(ring.newest().to_le_bytes());
    for number in ring.oldest()..=ring.newest() {
        bytes.extend(ring.cell(number).bytes());
    }
}

/// What was not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn text(&mut self) -> Result<String, Damaged> {
        let length = usize::from(u16::from_le_bytes(self.take()?));
        let (text, rest) = self.0.split_at_checked(length).ok_or(Damaged)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| Damaged)
    }

    fn ring(&mut self, grain: Grain) -> Result<Ring, Damaged> {
        let newest = i64::from_le_bytes(self.take()?);
        // Numbers that no clock has would overflow what is counted from them.
        if !(i64::MIN / 2..i64::MAX / 2).contains(&newest) {
            return Err(Damaged);
        }
        let cells = (0..grain.cells).map(|_| self.take().map(Cell::read)).collect::<Result<Vec<_>, _>>()?;
        Ok(Ring::ending(grain, newest, cells.into_iter()))
    }
}
