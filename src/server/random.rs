//! The only source of randomness.

/// Fills buffers with random bytes; tests use a deterministic sequence.
pub trait Random: Send + Sync {
    fn fill(&self, buffer: &mut [u8]);
}

impl dyn Random + '_ {
    /// Returns random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut buffer = [0; N];
        self.fill(&mut buffer);
        buffer
    }
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy)]
pub struct OsRandom;

impl Random for OsRandom {
    #[expect(clippy::disallowed_methods, reason = "the one place where randomness is drawn")]
    fn fill(&self, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("the operating system has a random generator");
    }
}

/// A sequence that is the same in every run.
#[cfg(test)]
#[derive(Debug, Default)]
pub struct CountingRandom(std::sync::atomic::AtomicU64);

#[cfg(test)]
impl CountingRandom {
    /// Another sequence for each name: servers that share a database must not create the same ids.
    pub fn with_seed(name: &str) -> Self {
        let start = name.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Self(std::sync::atomic::AtomicU64::new(start << 32))
    }
}

#[cfg(test)]
impl Random for CountingRandom {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let next = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mixed = next.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            chunk.copy_from_slice(&mixed.to_be_bytes()[..chunk.len()]);
        }
    }
}
