//! Limits the size of events of a stream, whose length is not known in advance.

/// The length of the unfinished event.
#[derive(Debug)]
pub struct EventSizeLimit {
    limit: usize,
    bytes: usize,
    line_is_empty: bool,
}

impl EventSizeLimit {
    /// For a stream that has not begun; `limit` in bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, line_is_empty: false }
    }

    /// Adds received bytes. Returns whether the event is still within the limit.
    pub fn accept(&mut self, bytes: &[u8]) -> bool {
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
    fn size_limit_applies_to_each_event() {
        const LIMIT: usize = 1 << 20;
        let mut size = EventSizeLimit::new(LIMIT);
        let event = [b"data: ".as_slice(), &vec![b'x'; LIMIT / 2], b"\n\n"].concat();
        for _ in 0..10 {
            assert!(size.accept(&event));
        }
        assert!(size.accept(&vec![b'x'; LIMIT - 10]));
        assert!(!size.accept(b"0123456789abcdef"));
    }
}
