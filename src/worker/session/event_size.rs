//! Events of a stream have no end that is known before, so they are measured as they come.

/// How long the unfinished event is.
#[derive(Debug)]
pub struct EventSize {
    limit: usize,
    bytes: usize,
    line_is_empty: bool,
}

impl EventSize {
    /// For a stream that has not begun; a longer event, in bytes, is not acceptable.
    pub fn up_to(limit: usize) -> Self {
        Self { limit, bytes: 0, line_is_empty: false }
    }

    /// Takes what came next. Whether the event is still an acceptable one.
    pub fn add(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\n' if self.line_is_empty => self.bytes = 0,
                b'\n' => self.line_is_empty = true,
                b'\r' => {}
                _ => self.line_is_empty = false,
            }
            self.bytes += 1;
        }
        self.bytes <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_event_counts() {
        const LIMIT: usize = 1 << 20;
        let mut size = EventSize::up_to(LIMIT);
        let event = [b"data: ".as_slice(), &vec![b'x'; LIMIT / 2], b"\n\n"].concat();
        for _ in 0..10 {
            assert!(size.add(&event));
        }
        assert!(size.add(&vec![b'x'; LIMIT - 10]));
        assert!(!size.add(b"0123456789abcdef"));
    }
}
