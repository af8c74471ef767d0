//! What was done in this tab, or refused: said as it happens, and kept to be read again while the tab is open.

use std::time::Duration;

use leptos::prelude::*;

use super::browser;
use super::clock::{Clock, use_clock};
use super::flash::Undo;
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;

/// How many can be read again.
const KEPT: usize = 20;
/// How long something good is said. What went wrong stays until it is dismissed.
const SHOWN: Duration = Duration::from_secs(8);
/// How long something is said that can be taken back.
const UNDOABLE: Duration = Duration::from_secs(30);

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub at: Timestamp,
    pub text: String,
    /// Whether it went wrong.
    pub wrong: bool,
    /// What to quote of something that went wrong.
    pub request_id: Option<String>,
}

/// A note that is being said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toast {
    pub id: usize,
    pub note: Note,
    pub undo: Option<Undo>,
}

/// The notes of a tab.
#[derive(Clone, Copy)]
pub(crate) struct Notes {
    pub past: RwSignal<Vec<Note>>,
    pub toasts: RwSignal<Vec<Toast>>,
    said: StoredValue<usize>,
    reader: StoredValue<String>,
    clock: Clock,
}

impl Notes {
    /// Those that a reader was told in this tab before: a page that is loaded goes on with them.
    pub fn of(reader: String, clock: Clock) -> Self {
        let notes = Self {
            past: RwSignal::default(),
            toasts: RwSignal::default(),
            said: StoredValue::new(0),
            reader: StoredValue::new(reader),
            clock,
        };
        Effect::new(move |_| {
            let kept = notes.reader.with_value(|reader| parse(&browser::recall(), reader));
            notes.past.update(|past| past.splice(0..0, kept).for_each(drop));
        });
        notes
    }

    /// Says what was done, and how to take it back if that can be.
    pub fn done(self, text: impl Into<String>, undo: Option<Undo>) {
        let shown = if undo.is_some() { UNDOABLE } else { SHOWN };
        let id =
            self.say(Note { at: self.clock.now_untracked(), text: text.into(), wrong: false, request_id: None }, undo);
        self.leave(id, shown);
    }

    /// Says what was refused.
    pub fn refused(self, problem: Problem) {
        let at = self.clock.now_untracked();
        self.say(Note { at, text: problem.detail, wrong: true, request_id: problem.request_id }, None);
    }

    /// Keeps what was said elsewhere.
    pub fn keep(self, text: impl Into<String>, wrong: bool) {
        self.remember(Note { at: self.clock.now_untracked(), text: text.into(), wrong, request_id: None });
    }

    /// Takes a toast away.
    pub fn dismiss(self, id: usize) {
        self.toasts.update(|toasts| toasts.retain(|toast| toast.id != id));
    }

    fn say(self, note: Note, undo: Option<Undo>) -> usize {
        let id = self.said.get_value() + 1;
        self.said.set_value(id);
        self.remember(note.clone());
        self.toasts.update(|toasts| toasts.push(Toast { id, note, undo }));
        id
    }

    fn remember(self, note: Note) {
        self.past.update(|past| {
            past.push(note);
            let over = past.len().saturating_sub(KEPT);
            past.drain(..over);
        });
        let text = self.past.with_untracked(|past| self.reader.with_value(|reader| write(past, reader)));
        browser::keep(&text);
    }

    /// Takes a toast away after a while, but not from under somebody's pointer or fingers.
    fn leave(self, id: usize, shown: Duration) {
        set_timeout(
            move || {
                if browser::attends(".toasts") {
                    self.leave(id, shown);
                } else {
                    self.dismiss(id);
                }
            },
            shown,
        );
    }
}

/// The notes of this page.
pub(crate) fn use_notes() -> Notes {
    use_context().unwrap_or_else(|| Notes::of(String::new(), use_clock()))
}

/// Notes as a tab keeps them: whose they are, then one a line.
fn write(notes: &[Note], reader: &str) -> String {
    let line = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let note = |Note { at, text, wrong, request_id }: &Note| {
        let id = request_id.as_deref().unwrap_or_default();
        format!("{}\t{}\t{}\t{}", at.0, u8::from(*wrong), line(id), line(text))
    };
    std::iter::once(line(reader)).chain(notes.iter().map(note)).collect::<Vec<_>>().join("\n")
}

/// Reads them again; those of somebody else are nobody's business.
fn parse(kept: &str, reader: &str) -> Vec<Note> {
    let mut lines = kept.split('\n');
    if lines.next() != Some(reader) {
        return Vec::new();
    }
    let note = |line: &str| {
        let mut parts = line.splitn(4, '\t');
        let at = Timestamp(parts.next()?.parse().ok()?);
        let (wrong, id, text) = (parts.next()? == "1", parts.next()?, parts.next()?);
        let request_id = Some(id.to_owned()).filter(|id| !id.is_empty());
        Some(Note { at, text: text.to_owned(), wrong, request_id })
    };
    lines.filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_again_by_whose_they_are() {
        let note = |text: &str, wrong, id: Option<&str>| Note {
            at: Timestamp(1_700_000_000_000),
            text: text.to_owned(),
            wrong,
            request_id: id.map(str::to_owned),
        };
        let notes = [note("The worker takes no new jobs.", false, None), note("<b> & so on", true, Some("req_1"))];
        let kept = write(&notes, "ada");
        assert_eq!(parse(&kept, "ada"), notes);
        assert_eq!(parse(&kept, "eve"), []);
        assert_eq!(parse("", "ada"), []);
        assert_eq!(parse("ada\nnonsense\n1\t2", "ada"), []);
        let odd = write(&[note("two\nlines\tand tabs", false, None)], "ada");
        assert_eq!(parse(&odd, "ada"), [note("two lines and tabs", false, None)]);
    }
}
