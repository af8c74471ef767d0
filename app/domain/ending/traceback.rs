//! Python's tracebacks in the lines of one rank: from the first header to the end of the last exception's message, with
//! those that led to it.

use super::found::{Class, Found};
use super::lines::{HEADER, Line};
use super::{Kind, kind, launcher};

/// How two tracebacks are joined.
const CHAINS: [&str; 2] = [
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
];
/// How Python begins several that were raised together, and what it draws before their lines.
const GROUP: &str = "+ Exception Group Traceback (most recent call last):";
const MARGIN: [char; 4] = [' ', '|', '+', '-'];
/// How a data loader shows what its worker raised.
const ORIGINAL: &str = "Original Traceback (most recent call last):";
/// So many lines of others may stand in the middle of one.
const FOREIGN: usize = 30;
/// So many lines of a message are kept.
const MESSAGE: usize = 15;
/// After more lines than this that are not indented, it is other output.
const LOOSE: usize = 8;
/// What a data loader says in the end, when a worker of it has said why.
const UNEXPECTED: &str = "exited unexpectedly";
/// How names of exceptions end.
const ENDINGS: [&str; 12] = [
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "Warning",
    "Timeout",
    "Iteration",
    "Failure",
    "Abort",
    "Empty",
    "Full",
    "Killed",
];

/// All of them, and those of launchers, which have the lines only.
pub fn all(lines: &[Line], stream: &[usize]) -> (Vec<Found>, Vec<Found>) {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < stream.len() {
        if is_header(lines[stream[at]].text()) {
            let mut reader = Reader { lines, stream, at, block: Vec::new(), headline: None };
            if lines[stream[at]].text().ends_with(GROUP) {
                reader.group();
            } else {
                reader.chain();
            }
            at = reader.at.max(at + 1);
            found.extend(reader.found());
        } else {
            at += 1;
        }
    }
    found.into_iter().partition(|found| !launcher::raised(&found.headline, &found.block))
}

fn is_header(text: &str) -> bool {
    text.ends_with(HEADER)
}

struct Reader<'l> {
    lines: &'l [Line],
    stream: &'l [usize],
    /// The next line, counted in the stream.
    at: usize,
    /// What belongs to it, with the lines' numbers.
    block: Vec<(usize, String)>,
    /// Where in the block the last exception's line stands, and how many lines its message has.
    headline: Option<(usize, usize)>,
}

impl<'l> Reader<'l> {
    fn text(&self, at: usize) -> Option<&'l str> {
        self.stream.get(at).map(|number| self.lines[*number].text())
    }

    fn take(&mut self, base: usize) {
        if let Some(text) = self.text(self.at) {
            self.block.push((self.stream[self.at], dedent(text, base).to_owned()));
        }
        self.at += 1;
    }

    /// Reads tracebacks as long as they are joined.
    fn chain(&mut self) {
        loop {
            let base = self.base();
            self.frames(base);
            self.message(base);
            let Some(next) = self.joined(base) else { return };
            while self.at < next {
                self.take(base);
            }
        }
    }

    /// Reads several that were raised together: the first of them is why.
    fn group(&mut self) {
        let has_margin = |text: &str| text.starts_with("  ") && text.trim_start().starts_with(['|', '+']);
        while self.text(self.at).is_some_and(has_margin) {
            self.take(2);
        }
        let mut raised = (0..self.block.len()).filter(|place| is_exception(self.block[*place].1.trim_matches(MARGIN)));
        let (group, first) = (raised.next(), raised.next());
        self.headline = first.or(group).map(|place| (place, 0));
    }

    /// How far it is indented.
    fn base(&self) -> usize {
        let (header, next) = (self.text(self.at).unwrap_or_default(), self.text(self.at + 1).unwrap_or_default());
        let before = header.len() - HEADER.len();
        if header[..before].trim().is_empty() { before } else { indent(next).saturating_sub(2) }
    }

    /// The header, the frames, and the line of the exception. What others say in between is passed over.
    fn frames(&mut self, base: usize) {
        self.take(base);
        let (mut foreign, is_own) = (0, self.lines[self.stream[self.at - 1]].is_traceback);
        while let Some(text) = self.text(self.at) {
            let own = dedent(text, base);
            if is_header(text) || CHAINS.contains(&own) || foreign > FOREIGN {
                return;
            } else if text.trim().is_empty() {
                self.at += 1;
            } else if indent(text) > base {
                foreign = 0;
                self.take(base);
            } else if is_exception(own) || (is_own && !launcher::wrote(own) && !is_of_a_log(own)) {
                if self.headline.is_none() || !own.contains(UNEXPECTED) {
                    self.headline = Some((self.block.len(), 0));
                }
                self.take(base);
                return;
            } else {
                foreign += 1;
                self.at += 1;
            }
        }
    }

    /// The lines of the exception's message that follow its first.
    fn message(&mut self, base: usize) {
        let Some((place, _)) = self.headline.filter(|(place, _)| place + 1 == self.block.len()) else { return };
        let (number, headline) = self.block[place].clone();
        let end = self.message_end(base, &headline, self.lines[number].is_traceback);
        let kept = end.min(self.at + MESSAGE);
        self.headline = Some((place, kept - self.at));
        while self.at < kept {
            self.take(base);
        }
        if kept < end {
            self.block.push((self.stream[end - 1], "…".to_owned()));
            self.at = end;
        }
    }

    fn message_end(&self, base: usize, headline: &str, is_own: bool) -> usize {
        if launcher::is_table(headline) {
            let is_edge = |at: &usize| self.text(*at).is_some_and(|text| dedent(text, base).starts_with("====="));
            return (self.at..self.stream.len()).filter(is_edge).nth(1).map_or(self.stream.len(), |edge| edge + 1);
        }
        let (mut firm, mut loose) = (self.at, 0);
        for at in self.at..self.stream.len() {
            let own = dedent(self.text(at).unwrap_or_default(), base);
            if self.ends_message(at, own, headline, is_own) {
                return at;
            }
            if is_own || own.starts_with([' ', '\t']) {
                firm = if loose == 0 { at + 1 } else { firm };
            } else if loose == LOOSE {
                return firm;
            } else {
                loose += 1;
            }
        }
        self.stream.len()
    }

    fn ends_message(&self, at: usize, own: &str, headline: &str, is_own: bool) -> bool {
        if own.trim().is_empty() {
            let mut rest = (at..self.stream.len()).filter_map(|at| self.text(at));
            let mut next = || rest.find(|text| !text.trim().is_empty());
            return !is_own || next().is_none_or(|next| is_header(next) || CHAINS.contains(&next.trim()));
        }
        is_header(own) || CHAINS.contains(&own) || launcher::is_idle(own) || is_of_a_log(own) || own == headline
    }

    /// Where the next traceback begins, if it belongs to this one.
    fn joined(&self, base: usize) -> Option<usize> {
        let says = |at: &usize| self.text(*at).is_some_and(|text| !matches!(text.trim(), "" | "\"\"\""));
        let next = (self.at..self.stream.len()).find(says)?;
        if self.text(next).is_some_and(|text| dedent(text, base) == ORIGINAL) {
            return Some(next);
        }
        self.text(next).filter(|text| CHAINS.contains(&dedent(text, base)))?;
        let after = (next + 1..self.stream.len()).find(says)?;
        self.text(after).is_some_and(is_header).then_some(after)
    }

    fn found(self) -> Option<Found> {
        let (place, message) = self.headline?;
        let (at, headline) = self.block.get(place)?.clone();
        let headline = headline.trim_start_matches(MARGIN).to_owned();
        let said: Vec<&str> = self.block[place..].iter().take(message + 1).map(|(_, line)| line.as_str()).collect();
        let kind = kind::of(&headline, &said.join("\n"));
        let class = match kind {
            Kind::Interrupted => Class::Interrupted,
            Kind::Disconnected => Class::Disconnected,
            _ => Class::Exception,
        };
        let (first, last) = (self.block.first()?.0, self.stream[self.at - 1]);
        let block = self.block.into_iter().map(|(_, line)| line).collect();
        Some(Found { class, kind, headline, block, at, lines: first..last + 1, rank: self.lines[at].rank })
    }
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

fn dedent(text: &str, base: usize) -> &str {
    &text[indent(text).min(base)..]
}

/// Whether a line is that of an exception: its name, and a message or none.
fn is_exception(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let behind = &text[name.len()..];
    let is_name = name.split('.').all(|part| {
        let inner = part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '<' | '>'));
        inner && part.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '<'))
    });
    let last = name.rsplit('.').next().unwrap_or_default();
    let capitals = last.chars().filter(char::is_ascii_uppercase).count();
    let is_class = last.starts_with(char::is_uppercase) && capitals > 1 && last.chars().any(char::is_lowercase);
    let is_known = ENDINGS.iter().any(|ending| last.ends_with(ending));
    let is_qualified = name.contains('.')
        && (last.starts_with(char::is_uppercase) || last.ends_with("error") || last.ends_with("timeout"));
    let ends = behind.is_empty() || behind == ":" || behind.starts_with(": ");
    is_name && ends && (is_class || is_known || is_qualified)
}

/// Whether a line is one of a log, or of a progress bar: no part of a message.
pub fn is_of_a_log(text: &str) -> bool {
    let start = text.trim_start_matches('[');
    let bytes = start.as_bytes();
    let is_date = bytes.get(4) == Some(&b'-') && bytes.iter().take(4).all(u8::is_ascii_digit);
    let is_clock = bytes.get(2) == Some(&b':') && bytes.get(5) == Some(&b':');
    let is_glog =
        start.starts_with(['I', 'W', 'E', 'F']) && bytes.len() > 5 && bytes[1..5].iter().all(u8::is_ascii_digit);
    let level = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
        .iter()
        .any(|level| start.strip_prefix(level).is_some_and(|rest| rest.starts_with([':', ' ', ']'])));
    let is_bar = text.contains("%|") && (text.contains("it/s") || text.contains("s/it") || text.contains("it]"));
    let is_left = text.starts_with("Exception ignored in") || text.starts_with("Error in ");
    is_date || is_clock || is_glog || level || is_bar || is_left
}
