//! What must hold, whatever the bytes.

pub mod audit;
pub mod bodies;
pub mod bundle;
pub mod certificate;
pub mod edge;
pub mod ending;
pub mod events;
pub mod glob;
pub mod mask;
pub mod names;
pub mod stream;
pub mod terminal;

/// The bytes as text and what stands before its first line end; none if they are no text.
fn first_line(data: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(data).ok().map(|text| text.split_once('\n').unwrap_or((text, "")))
}

/// How long each piece of something is: as the first line says, a byte each, over and over. Never nothing.
fn cuts(line: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let own = line.iter().map(|byte| usize::from(*byte % 64) + 1);
    own.chain([7]).cycle()
}

/// A directory of its own, in memory where there is such a thing.
fn directory() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let created = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    created.expect("a directory")
}
