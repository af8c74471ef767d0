//! What launchers say when one of their trainers has ended: it is never why, but it names who fell first, and how.

use super::Kind;
use super::found::{Class, Found};
use super::lines::Line;

/// Where torchrun's table names whoever fell first.
const ROOT: &str = "Root Cause (first observed failure):";
/// So many lines below it are of that entry.
const ENTRY: usize = 10;
/// What stands in lines that launchers write.
const OWN: [&str; 13] = [
    "torch/distributed/elastic/",
    "torch.distributed.elastic",
    "torch/distributed/run.py",
    "closing signal SIG",
    "Unable to shutdown process",
    "failed (exitcode: ",
    "Setting OMP_NUM_THREADS",
    "[launch.py:",
    "[runner.py:",
    "launcher/launch.py:",
    "launcher/runner.py:",
    "Killing subprocess",
    "exits with return code = ",
];
/// What is said at every end, whatever it is.
const IDLE: [&str; 7] = [
    "wandb:",
    "destroy_process_group() was not called",
    "resource_tracker: ",
    "warnings.warn(",
    "Assertion `",
    "ProcessGroupNCCL.cpp",
    "TCPStore.cpp",
];

/// Who fell first, as torchrun has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    pub rank: u32,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

/// Whether a launcher wrote this line.
pub fn wrote(text: &str) -> bool {
    is_ruler(text) || OWN.iter().any(|words| text.contains(words))
}

/// Whether a line that comes after a failure says nothing of how the training went on.
pub fn is_idle(text: &str) -> bool {
    text.trim().is_empty() || wrote(text) || IDLE.iter().any(|words| text.contains(words))
}

pub fn is_ruler(text: &str) -> bool {
    text.len() >= 5 && text.bytes().all(|byte| matches!(byte, b'=' | b'-' | b'*'))
}

/// Whether an exception is a launcher's own, told by the line of the exception and the frames above it.
pub fn raised(headline: &str, block: &[String]) -> bool {
    let own = |line: &String| {
        ["accelerate/commands/", "deepspeed/launcher/", "torch/distributed/run.py", "torch/distributed/launch"]
            .iter()
            .any(|path| line.contains(path))
    };
    is_table(headline)
        || headline.starts_with("torch.distributed.elastic.multiprocessing.api.SignalException")
        || (headline.starts_with("subprocess.CalledProcessError: ")
            && (block.iter().any(own) || starts_trainers(headline)))
}

/// Whether an exception's message is torchrun's table of who failed.
pub fn is_table(headline: &str) -> bool {
    headline.starts_with("torch.distributed.elastic.multiprocessing.errors.ChildFailedError")
}

/// Whether a command that has failed is a trainer's, or a launcher: whatever that said above is why.
fn starts_trainers(headline: &str) -> bool {
    let command = headline.split_once("Command '['").and_then(|(_, command)| command.split('\'').next());
    let program = command.and_then(|command| command.rsplit('/').next()).unwrap_or_default();
    ["python", "accelerate", "torchrun", "deepspeed", "mpirun", "srun"].iter().any(|name| program.starts_with(name))
}

/// Who fell first, by the last table.
pub fn root(lines: &[Line]) -> Option<Root> {
    let number = |text: &str| text.split(' ').next().and_then(|number| number.parse::<i32>().ok());
    let signal = field(lines, "exitcode").and_then(number).filter(|code| *code < 0).map(i32::wrapping_neg);
    let rank = field(lines, "rank").and_then(number)?;
    Some(Root { rank: u32::try_from(rank).ok()?, signal })
}

fn entry(lines: &[Line]) -> Option<usize> {
    lines.iter().rposition(|line| line.text().trim() == ROOT)
}

/// A field of the entry.
fn field<'l>(lines: &'l [Line], name: &str) -> Option<&'l str> {
    let at = entry(lines)?;
    let of = |line: &'l Line| line.text().trim_start().strip_prefix(name)?.trim_start().strip_prefix(": ");
    lines[at..].iter().filter(|line| line.rank == lines[at].rank).take(ENTRY).find_map(of)
}

/// What is said of a process that a signal has ended, if that is all that is known: the last word of it.
pub fn killed(lines: &[Line], root: Option<Root>) -> Option<Found> {
    let said = lines.iter().enumerate().rev().find_map(|(at, line)| {
        let (signal, words) = signal_of(line.text())?;
        Some(Found {
            rank: root.map(|root| root.rank).or(line.rank),
            ..Found::line(Class::Killed, kind(signal), words, at)
        })
    });
    // The table stands below what the launcher said before, and counts more.
    said.filter(|found| root.is_none_or(|root| root.signal.is_some() || found.kind == Kind::Interrupted))
}

fn kind(signal: i32) -> Kind {
    match signal {
        2 => Kind::Interrupted,
        9 | 15 => Kind::Killed,
        _ => Kind::Crash,
    }
}

/// The signal of which a line tells, and the words that do.
fn signal_of(text: &str) -> Option<(i32, &str)> {
    let number = |from: &str| from.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let behind = |mark: &str| text.find(mark).map(|at| &text[at..]);
    if let Some(words) = behind("Signal ").filter(|words| words.contains(") received by PID ")) {
        return Some((number(&words["Signal ".len()..])?, words));
    }
    if let Some(words) = behind("failed (exitcode: -") {
        return Some((number(&words["failed (exitcode: -".len()..])?, words));
    }
    if let Some((_, code)) = text.split_once("exits with return code = -") {
        let command = behind("[launch.py:").and_then(|from| from.split_once("] ")).map_or(text, |(_, command)| command);
        return Some((number(code)?, command));
    }
    if let Some((_, signal)) = text.split_once("died with <Signals.") {
        return Some((number(signal.split_once(": ")?.1)?, behind("Command ").unwrap_or(text)));
    }
    if let Some(words) = behind("Process ").filter(|words| words.contains(" got signal: ")) {
        return Some((number(words.split_once(" got signal: ")?.1)?, words));
    }
    shell(text).map(|signal| (signal, text))
}

/// What shells say of a command that a signal has ended.
fn shell(text: &str) -> Option<i32> {
    let last = text.rsplit(": ").next().unwrap_or(text);
    let words = last.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let is = |word: &str| {
        words == word || words.starts_with(&format!("{word} (core dumped)")) || words.starts_with(&format!("{word}  "))
    };
    let signals =
        [("Killed", 9), ("Segmentation fault", 11), ("Bus error", 7), ("Aborted", 6), ("Illegal instruction", 4)];
    signals.into_iter().find(|(word, _)| is(word)).map(|(_, signal)| signal)
}
