//! Secrets in a log: the first line has the secrets, between tabs, the second the cuts, the rest is the log. However it is
//! cut, what is sent is the whole with stars in the place of every secret, and everything else as it was.

use crate::secret::mask::{Mask, Tail};

/// The most bytes of one piece.
const LIMIT: usize = 16;

/// See the module.
pub fn check(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let (Some(secrets), Some(cuts), Some(log)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Ok(secrets) = std::str::from_utf8(secrets) else { return };
    let secrets: Vec<&str> = secrets.split('\t').collect();
    let mask = Mask::of(secrets.iter().copied());
    let mut whole = log.to_vec();
    mask.hide(&mut whole);
    hidden(&secrets, log, &whole);
    assert_eq!(sent(&mask, log, super::cuts(cuts)), whole);
}

fn hidden(secrets: &[&str], log: &[u8], masked: &[u8]) {
    assert_eq!(log.len(), masked.len());
    assert!(log.iter().zip(masked).all(|(before, after)| before == after || *after == b'*'));
    // Control characters are passed over, also those of a secret.
    let plain = |secret: &&&str| !secret.chars().any(char::is_control);
    for secret in secrets.iter().filter(|secret| secret.len() >= app::domain::secret::SHORTEST).filter(plain) {
        for (place, found) in log.windows(secret.len()).enumerate() {
            let gone = || masked[place..place + secret.len()].iter().all(|byte| *byte == b'*');
            assert!(found != secret.as_bytes() || gone(), "{secret:?} at {place}");
        }
    }
}

/// As the agent reads a file that grows.
fn sent(mask: &Mask, log: &[u8], mut cuts: impl Iterator<Item = usize>) -> Vec<u8> {
    let (mut sent, mut there) = (Vec::new(), 0);
    while sent.len() < log.len() {
        there = (there + cuts.next().unwrap_or(1)).min(log.len());
        let start = sent.len().saturating_sub(mask.reach());
        let end = there.min(sent.len() + LIMIT + mask.reach());
        let open = end == there && there < log.len();
        let tail = if open { Tail::Growing } else { Tail::Known };
        let piece = mask.piece(log[start..end].to_vec(), sent.len() - start, LIMIT, tail);
        assert!(piece.len() <= LIMIT && (open || !piece.is_empty()), "it goes on");
        sent.extend(piece);
    }
    sent
}
