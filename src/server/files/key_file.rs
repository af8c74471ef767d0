//! A key in its own file, readable by the server only.

use std::io;
use std::path::Path;

use super::atomic_write;
use crate::tokens::hex;

/// Writes a key in hex, atomically, and never over one of a concurrent server.
pub fn write_key_if_absent(path: &Path, key: &[u8; 32]) -> io::Result<()> {
    atomic_write::write_if_absent(path, 0o600, format!("{}\n", hex(key)).as_bytes())
}
