//! What must hold for all input.

pub mod audit;
pub mod bodies;
pub mod bundle;
pub mod certificate;
pub mod config;
pub mod edge;
pub mod ending;
pub mod events;
pub mod glob;
pub mod mask;
pub mod names;
pub mod stream;
pub mod terminal;

/// Splits text at its first line end; none if the bytes are not text.
fn first_line(data: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(data).ok().map(|text| text.split_once('\n').unwrap_or((text, "")))
}

/// Returns the lengths of pieces, from one byte each of the first line, repeated endlessly. No length is zero.
fn cuts(line: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let lengths = line.iter().map(|byte| usize::from(*byte % 64) + 1);
    lengths.chain([7]).cycle()
}

/// Creates a temporary directory, in memory where available.
fn directory() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let created = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    created.expect("a directory")
}
