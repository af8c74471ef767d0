//! What a log says about itself: links to trackers, and the ranks that write to it. Only its beginning and its end are
//! read, so that it costs the same for a log of any length.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use app::domain::log_text::links::{FoundLink, find_links};
use app::domain::log_text::ranks::ranks_in;

use super::logs::{LogSlice, read_slice};

/// How much of a log's beginning, and of its end, is read.
const PART_BYTES: u64 = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFacts {
    pub links: Vec<FoundLink>,
    /// In ascending order.
    pub ranks: Vec<u32>,
}

/// The facts of a log of one size.
pub type CachedLogFacts = Option<(u64, Arc<LogFacts>)>;

/// Returns the facts, and the log's size; reads the log only if it has grown.
pub fn load(path: &Path, cached: &Mutex<CachedLogFacts>) -> io::Result<(u64, Arc<LogFacts>)> {
    let start = read_slice(path, Some(0), 0)?;
    let mut cached = cached.lock().expect("no panic while it is held");
    if let Some(known) = cached.as_ref().filter(|(size, _)| *size == start.size) {
        return Ok(known.clone());
    }
    let facts = (start.size, Arc::new(read(path)?));
    *cached = Some(facts.clone());
    Ok(facts)
}

fn read(path: &Path) -> io::Result<LogFacts> {
    let head = read_slice(path, Some(0), 2 * PART_BYTES)?;
    let mut text = complete_lines(&head);
    if head.next < head.size {
        text.truncate(text.floor_char_boundary(usize::try_from(PART_BYTES).unwrap_or(usize::MAX)));
        // A line that was cut is not complete.
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        text.push_str(&complete_lines(&read_slice(path, None, PART_BYTES)?));
    }
    Ok(LogFacts { links: find_links(&text), ranks: ranks_in(&text).into_iter().collect() })
}

/// The lines that begin and end in a slice: an address may continue in the next one.
fn complete_lines(slice: &LogSlice) -> String {
    let text = String::from_utf8_lossy(&slice.bytes);
    let start = if slice.offset == 0 { 0 } else { text.find('\n').map_or(text.len(), |end| end + 1) };
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text.get(start..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(path: &Path, cached: &Mutex<CachedLogFacts>) -> (Vec<String>, Vec<u32>) {
        let (_, facts) = load(path, cached).expect("disk");
        (facts.links.iter().map(|link| link.url.clone()).collect(), facts.ranks.clone())
    }

    #[test]
    fn facts_are_of_the_beginning_and_the_end_and_follow_the_log() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, cached) = (directory.path().join("1.log"), Mutex::default());
        assert_eq!(facts(&path, &cached), (vec![], vec![]));
        let run = |name: &str| format!("https://wandb.ai/a/b/runs/{name}");
        let mut text = format!("[rank0]: {}\n{}", run("one"), run("tw"));
        std::fs::write(&path, &text).expect("disk");
        assert_eq!(facts(&path, &cached), (vec![run("one")], vec![0]), "the last line may continue");
        text.push_str("o\n");
        let filler = "\u{1b}[2mé\n".repeat(100_000);
        text = format!("{text}{filler}{}\n[rank1]: middle\n{filler}[rank2]: end\nhalf", run("middle"));
        std::fs::write(&path, &text).expect("disk");
        assert_eq!(facts(&path, &cached), (vec![run("one"), run("two")], vec![0, 2]));
        std::fs::write(&path, [b"\xff\xfe[rank4]: \n".as_slice(), &vec![b'x'; 10 << 20]].concat()).expect("disk");
        assert_eq!(facts(&path, &cached), (vec![], vec![]), "a line of ten megabytes");
    }
}
