//! Secrets in a log: the first line has the secrets, separated by tabs, the second the cuts, the rest is the log. For
//! all cuts, the complete log is sent with stars in place of each secret, and is otherwise unchanged.

use crate::worker::secret::mask::{Mask, TailState};

/// The size limit of one piece, in bytes.
const LIMIT: usize = 16;

/// See the module.
pub fn check(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let (Some(secrets), Some(cuts), Some(log)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Ok(secrets) = std::str::from_utf8(secrets) else { return };
    let secrets: Vec<&str> = secrets.split('\t').collect();
    let mask = Mask::from_values(secrets.iter().copied());
    let mut masked = log.to_vec();
    mask.mask_bytes(&mut masked);
    assert_masked(&secrets, log, &masked);
    assert_eq!(mask_in_windows(&mask, log, super::cuts(cuts)), masked);
}

fn assert_masked(secrets: &[&str], log: &[u8], masked: &[u8]) {
    assert_eq!(log.len(), masked.len());
    assert!(log.iter().zip(masked).all(|(before, after)| before == after || *after == b'*'));
    // Control characters are skipped, also those of a secret.
    let plain = |secret: &&&str| !secret.chars().any(char::is_control);
    for secret in secrets.iter().filter(|secret| secret.len() >= app::domain::secret::MIN_VALUE_BYTES).filter(plain) {
        for (offset, found) in log.windows(secret.len()).enumerate() {
            let is_masked = || masked[offset..offset + secret.len()].iter().all(|byte| *byte == b'*');
            assert!(found != secret.as_bytes() || is_masked(), "{secret:?} at {offset}");
        }
    }
}

/// Masks a growing file in windows, as the agent does.
fn mask_in_windows(mask: &Mask, log: &[u8], mut cuts: impl Iterator<Item = usize>) -> Vec<u8> {
    let (mut masked, mut available) = (Vec::new(), 0);
    while masked.len() < log.len() {
        available = (available + cuts.next().unwrap_or(1)).min(log.len());
        let start = masked.len().saturating_sub(mask.context_bytes());
        let end = available.min(masked.len() + LIMIT + mask.context_bytes());
        let is_growing = end == available && available < log.len();
        let tail = if is_growing { TailState::Growing } else { TailState::Complete };
        let piece = mask.mask_window(log[start..end].to_vec(), masked.len() - start, LIMIT, tail);
        assert!(piece.len() <= LIMIT && (is_growing || !piece.is_empty()), "each window makes progress");
        masked.extend(piece);
    }
    masked
}
