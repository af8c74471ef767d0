//! Ends that leave no traceback: crashes of the process itself, programs that never began, and what a log calls an error.

use super::Kind;
use super::found::{Class, Found};
use super::kind::is_not_a_number;
use super::launcher;
use super::lines::Line;

/// So many lines of a crash are kept.
const MOST: usize = 40;
/// So near to the end an error of the log is the end's.
const NEAR: usize = 12;

type Stream<'s> = &'s [usize];

/// Crashes, oldest first.
pub fn crashes(lines: &[Line], stream: Stream<'_>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (place, number) in stream.iter().enumerate() {
        if found.last().is_some_and(|last| last.lines.contains(number)) {
            continue;
        }
        let text = lines[*number].text();
        let rest = &stream[place..];
        if text.starts_with("Fatal Python error: ") {
            found.push(block(lines, rest, Kind::Crash, text, is_of_a_dump));
        } else if text.starts_with("terminate called") {
            let what = rest.iter().skip(1).take(2).find_map(|next| lines[*next].text().trim().strip_prefix("what():"));
            let headline = what.map_or_else(|| text.to_owned(), |what| format!("{text}: {}", what.trim()));
            let kind = super::kind::of("", &headline);
            let kind = if kind == Kind::Exception { Kind::Crash } else { kind };
            let class = if kind == Kind::Disconnected { Class::Disconnected } else { Class::Crash };
            found.push(Found { class, ..block(lines, rest, kind, &headline, |text| !text.is_empty()) });
        } else if let Some(said) = watchdog(text) {
            found.push(block(lines, rest, Kind::Timeout, said, |text| text.contains("ProcessGroupNCCL.cpp")));
        }
    }
    found
}

/// What the watchdog of a process group says of an operation that did not end.
fn watchdog(text: &str) -> Option<&str> {
    let behind = || text.strip_prefix("[E").and_then(|line| line.split_once("] ")).map_or(text, |(_, said)| said);
    text.contains("Watchdog caught collective operation timeout").then(behind)
}

/// Whether a line belongs to what faulthandler writes.
fn is_of_a_dump(text: &str) -> bool {
    let starts = [
        "  ",
        "Thread 0x",
        "Current thread 0x",
        "Extension modules:",
        "Python runtime state",
        "<no Python frame>",
        "Stack ",
    ];
    text.is_empty() || starts.iter().any(|start| text.starts_with(start))
}

/// Its first line, and those after it that belong to it.
fn block(lines: &[Line], stream: Stream<'_>, kind: Kind, headline: &str, belongs: impl Fn(&str) -> bool) -> Found {
    let at = stream.first().copied().unwrap_or_default();
    let rest = stream.iter().skip(1).take_while(|number| belongs(lines[**number].text())).take(MOST);
    let all: Vec<usize> = std::iter::once(at).chain(rest.copied()).collect();
    let mut block: Vec<String> = all.iter().map(|number| lines[*number].text().to_owned()).collect();
    while block.last().is_some_and(String::is_empty) {
        block.pop();
    }
    let end = all.last().map_or(at, |last| last + 1);
    Found { block, lines: at..end, rank: lines[at].rank, ..Found::line(Class::Crash, kind, headline, at) }
}

/// A program that never began, in its last words.
pub fn refused(lines: &[Line], stream: Stream<'_>) -> Option<Found> {
    let found = stream.iter().enumerate().rev().find_map(|(place, number)| {
        let kind = refusal(lines[*number].text())?;
        Some((place, *number, kind))
    });
    let (place, at, kind) = found?;
    let usage = if kind == Kind::Configuration { usage(lines, &stream[..place]) } else { None };
    // Without its usage, `error:` may be anybody's word.
    if kind == Kind::Configuration && usage.is_none() {
        return None;
    }
    let first = usage.unwrap_or(place);
    let mut block: Vec<String> = stream[first..place].iter().map(|number| lines[*number].text().to_owned()).collect();
    if !block.is_empty() {
        block.push(lines[at].text().to_owned());
    }
    let lines_of = stream[first]..at + 1;
    Some(Found {
        block,
        lines: lines_of,
        rank: lines[at].rank,
        ..Found::line(Class::Refused, kind, lines[at].text(), at)
    })
}

/// Where the usage begins that stands right above.
fn usage(lines: &[Line], before: Stream<'_>) -> Option<usize> {
    before
        .iter()
        .rposition(|number| lines[*number].text().to_lowercase().starts_with("usage: "))
        .filter(|place| before.len() - place < MOST)
}

/// Whether a program says with this line that it does not begin, and why.
fn refusal(text: &str) -> Option<Kind> {
    let (program, said) = text.split_once(": ")?;
    let is_python = program.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    if is_python && said.starts_with("No module named ") {
        Some(Kind::MissingModule)
    } else if (is_python && said.contains("can't open file"))
        || [": command not found", ": not found"].iter().any(|end| text.ends_with(end))
    {
        Some(Kind::MissingFile)
    } else if said.starts_with("error: ") || program == "Error" {
        Some(Kind::Configuration)
    } else {
        ["SyntaxError", "IndentationError", "TabError"].contains(&program).then_some(Kind::Exception)
    }
}

/// The last line near the end that its log calls an error, with those before it.
pub fn logged(lines: &[Line]) -> Option<Found> {
    let said: Vec<usize> =
        (0..lines.len()).rev().filter(|at| !launcher::is_idle(lines[*at].text())).take(NEAR).collect();
    let errors: Vec<usize> = said.into_iter().filter(|at| is_error(lines[*at].text())).collect();
    let (last, first) = (*errors.first()?, *errors.last()?);
    let kind = if errors.iter().any(|at| is_not_a_number(lines[*at].text())) { Kind::NotANumber } else { Kind::Logged };
    let several: Vec<String> = errors.iter().rev().map(|at| lines[*at].text().to_owned()).collect();
    let block = if several.len() > 1 { several } else { Vec::new() };
    // It is the loss that says why.
    let at = if kind == Kind::NotANumber {
        errors.iter().copied().find(|at| is_not_a_number(lines[*at].text()))?
    } else {
        last
    };
    Some(Found {
        block,
        lines: first..last + 1,
        rank: lines[at].rank,
        ..Found::line(Class::Logged, kind, lines[at].text(), at)
    })
}

/// Whether a log calls this an error: by the level that stands before it.
fn is_error(text: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).take(14);
    words.any(|word| matches!(word, "ERROR" | "CRITICAL" | "FATAL"))
        || is_not_a_number(text)
        || ["Error: ", "error: ", "fatal: "].iter().any(|start| text.starts_with(start))
}
