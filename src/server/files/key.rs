//! A key in a file of its own, for the server's eyes only.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::tokens::hex;

/// Leaves this key there, in hex: whole or not at all, and never over one that another server has left meanwhile.
pub fn leave(path: &Path, key: &[u8; 32]) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = Path::new(&draft);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft)?;
    file.write_all(format!("{}\n", hex(key)).as_bytes())?;
    file.sync_all()?;
    match fs::hard_link(draft, path) {
        // A file system without links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(draft, path),
        Ok(()) | Err(_) => fs::remove_file(draft),
    }
}
