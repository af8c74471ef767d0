//! Why a trainer ended, by the end of its log. Launchers write pages about trainers that have fallen, and several ranks
//! write at once; what counts is the exception of the rank that fell first.

mod cut;
mod found;
mod kind;
mod launcher;
mod lines;
mod signs;
#[cfg(test)]
mod tests;
mod traceback;

use found::{Class, Found};
use lines::Line;

/// After so many lines in which training went on, an exception is not why it ended: somebody had caught it.
const LIVED_ON: usize = 30;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with an exit code other than 0.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// What kind of a cause it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A GPU's memory, or the host's.
    OutOfMemory,
    /// The loss is NaN.
    NotANumber,
    /// Something killed it: mostly the kernel, for memory.
    Killed,
    /// No space left.
    DiskFull,
    /// An operation of all ranks did not end in time.
    Timeout,
    /// A segmentation fault, a bus error, a C++ exception.
    Crash,
    /// The GPU refused to go on.
    Device,
    /// Something is not installed.
    MissingModule,
    /// A file or a program is not there.
    MissingFile,
    /// A wrong option or configuration.
    Configuration,
    /// A repository that takes no stranger.
    Access,
    /// Ctrl-C.
    Interrupted,
    /// Another rank was gone.
    Disconnected,
    /// Any other exception.
    Exception,
    /// An error of its log.
    Logged,
}

/// Why a trainer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What kind of a cause it is.
    pub kind: Kind,
    /// The line that says it, as it was printed.
    pub headline: String,
    /// All that belongs to it, in its own shape; nothing if the headline is all.
    pub block: String,
    /// The rank that says it, if that is known.
    pub rank: Option<u32>,
    /// The number of the headline's line, from 0.
    pub line: usize,
}

/// Finds the cause of an end in the end of a log, if that says one.
pub fn cause(log_end: &str, end: End) -> Option<Cause> {
    let log = Log::read(log_end);
    let order: &[Class] = match log.signal(end) {
        // Whoever is killed says nothing about it.
        Some(9 | 15) => &[Class::Killed],
        Some(4 | 7 | 8 | 11) => &[Class::Crash, Class::Exception, Class::Killed],
        _ => &[
            Class::Exception,
            Class::Crash,
            Class::Refused,
            Class::Interrupted,
            Class::Disconnected,
            Class::Killed,
            Class::Logged,
        ],
    };
    order.iter().find_map(|class| log.first_of(*class)).as_ref().map(told)
}

/// The lines that are the trainer's own, as a terminal showed them: without what launchers say of its end.
pub fn own_lines(log_end: &str) -> Vec<String> {
    let Log { lines, launchers, .. } = Log::read(log_end);
    let of_launchers = |at: &usize| launchers.iter().any(|found| found.lines.contains(at));
    let own = |(at, line): &(usize, Line)| !of_launchers(at) && !launcher::wrote(line.text());
    lines.into_iter().enumerate().filter(own).map(|(_, line)| line.whole).collect()
}

fn told(found: &Found) -> Cause {
    let is_all = found.block.is_empty() || found.block == [found.headline.as_str()];
    Cause {
        kind: found.kind,
        headline: cut::headline(&found.headline),
        block: if is_all { String::new() } else { cut::block(&found.block) },
        rank: found.rank,
        line: found.at,
    }
}

/// A log's end, and all that was found in it.
struct Log {
    lines: Vec<Line>,
    root: Option<launcher::Root>,
    /// Of each rank, oldest first.
    found: Vec<Vec<Found>>,
    /// What launchers raised themselves.
    launchers: Vec<Found>,
    /// How many lines come from each on in which training goes on.
    living: Vec<usize>,
}

impl Log {
    fn read(text: &str) -> Self {
        let lines = lines::read(text);
        let (mut found, mut launchers) = (Vec::new(), Vec::new());
        for stream in lines::streams(&lines) {
            let (mut own, of_launcher) = traceback::all(&lines, &stream);
            own.extend(signs::crashes(&lines, &stream));
            own.extend(signs::refused(&lines, &stream));
            found.push(own);
            launchers.extend(of_launcher);
        }
        // Where ranks write to files of their own, the table has their tracebacks.
        for table in &launchers {
            let inside: Vec<usize> = (table.at + 1..table.lines.end).collect();
            found.push(traceback::all(&lines, &inside).0);
        }
        let living = living(&lines, found.iter().flatten().chain(&launchers));
        let root = launcher::root(&lines);
        found.push(launcher::killed(&lines, root).into_iter().chain(signs::logged(&lines)).collect());
        Self { lines, root, found, launchers, living }
    }

    /// The signal that ended whoever fell first. Shells tell it by a code.
    fn signal(&self, end: End) -> Option<i32> {
        match (self.root, end) {
            (Some(root), _) => root.signal,
            (None, End::Signal(signal)) => Some(signal),
            (None, End::Code(code)) => (code > 128 && code < 160).then_some(code - 128),
        }
    }

    /// Of the rank that fell first the last of this class, else of the last ones of each rank the earliest.
    fn first_of(&self, class: Class) -> Option<Found> {
        let root = self.root.map(|root| root.rank);
        let counts = |found: &&Found| {
            found.class == class && (root.is_some() && found.rank == root || self.is_of_the_end(found))
        };
        // What a crash says first is why; of exceptions those before the last were caught.
        let one = |found: &'_ Vec<Found>| match class {
            Class::Crash => found.iter().find(counts).cloned(),
            _ => found.iter().rev().find(counts).cloned(),
        };
        let each: Vec<Found> = self.found.iter().filter_map(one).collect();
        let of_root = each.iter().find(|found| root.is_some() && found.rank == root);
        of_root.or_else(|| each.iter().min_by_key(|found| found.at)).cloned()
    }

    /// Whether nothing goes on after it.
    fn is_of_the_end(&self, found: &Found) -> bool {
        self.living.get(found.lines.end).is_none_or(|goes_on| *goes_on <= LIVED_ON)
    }
}

/// How many lines from each on are neither of a failure nor said at every end.
fn living<'f>(lines: &[Line], failures: impl Iterator<Item = &'f Found>) -> Vec<usize> {
    let mut alive: Vec<bool> = lines.iter().map(|line| !launcher::is_idle(line.text())).collect();
    for failure in failures {
        alive[failure.lines.clone()].fill(false);
    }
    let mut count = 0;
    let mut living: Vec<usize> = alive
        .iter()
        .rev()
        .map(|alive| {
            count += usize::from(*alive);
            count
        })
        .collect();
    living.reverse();
    living
}
