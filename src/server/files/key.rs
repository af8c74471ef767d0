//! A key in a file of its own, for the server's eyes only.

use std::io;
use std::path::Path;

use super::whole;
use crate::tokens::hex;

/// Leaves this key there, in hex: whole or not at all, and never over one that another server has left meanwhile.
pub fn leave(path: &Path, key: &[u8; 32]) -> io::Result<()> {
    whole::leave(path, 0o600, format!("{}\n", hex(key)).as_bytes())
}
