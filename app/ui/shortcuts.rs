//! The keys: one table for what they do and for the list that `?` shows.

use super::locales::sentence::Text;
use super::locales::words::habits::Habits;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Opens the search for anything.
    Search,
    /// Shows the list of keys.
    Help,
    /// Goes to the place of this key.
    Go(char),
    /// Goes to the page's filter.
    Filter,
    /// Goes to the next row.
    Next,
    /// Goes to the row before.
    Previous,
    /// Follows the link or opens the question on the page that says that this key is its own; goes to a button only.
    Press(char),
    /// Ticks the row.
    Select,
    /// Opens the row's menu.
    Menu,
    /// What the browser does anyway.
    Native,
}

/// A key, or two of which the first is `g`, and what it does.
pub(crate) struct Shortcut {
    pub keys: &'static str,
    pub act: Act,
    pub label: fn(&Habits) -> Text,
}

/// All but those that go to a place ([`super::places`]), in the order of the list.
pub(crate) const SHORTCUTS: &[Shortcut] = &[
    Shortcut { keys: "Ctrl K", act: Act::Search, label: |words| words.k_palette },
    Shortcut { keys: "?", act: Act::Help, label: |words| words.k_help },
    Shortcut { keys: "/", act: Act::Filter, label: |words| words.k_filter },
    Shortcut { keys: "j", act: Act::Next, label: |words| words.k_next },
    Shortcut { keys: "k", act: Act::Previous, label: |words| words.k_previous },
    Shortcut { keys: "Enter", act: Act::Native, label: |words| words.k_open },
    Shortcut { keys: "x", act: Act::Select, label: |words| words.k_select },
    Shortcut { keys: ".", act: Act::Menu, label: |words| words.k_menu },
    Shortcut { keys: "c", act: Act::Press('c'), label: |words| words.k_create },
    Shortcut { keys: "d", act: Act::Press('d'), label: |words| words.k_drain },
    Shortcut { keys: "u", act: Act::Press('u'), label: |words| words.k_undo },
    Shortcut { keys: "Esc", act: Act::Native, label: |words| words.k_close },
];

/// The key before one that names a place.
const GO: &str = "g";

/// A key as it was pressed.
#[expect(clippy::struct_excessive_bools, reason = "five facts, each on its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stroke<'k> {
    pub key: &'k str,
    /// Control, or the command key of a Mac.
    pub command: bool,
    /// Another modifier: the key belongs to the browser or to an input method.
    pub other: bool,
    /// It goes into a text.
    pub typing: bool,
    /// A dialog is open, and has its own keys.
    pub dialog: bool,
    /// It is held down.
    pub held: bool,
}

/// What a key means, and whether the next one names a place.
///
/// Single keys mean something only to who wants them, and never while somebody types or answers a dialog.
pub(crate) fn read(stroke: Stroke<'_>, after_go: bool, single_keys: bool) -> (Option<Act>, bool) {
    if stroke.command && !stroke.other && stroke.key.eq_ignore_ascii_case("k") {
        return (Some(Act::Search), false);
    }
    if !single_keys || stroke.command || stroke.other || stroke.typing || stroke.dialog {
        return (None, false);
    }
    if after_go {
        let mut key = stroke.key.chars();
        let place = key.next().filter(|c| key.next().is_none() && c.is_ascii_lowercase());
        return (place.map(Act::Go), false);
    }
    if stroke.key == GO {
        return (None, !stroke.held);
    }
    let act = SHORTCUTS.iter().find(|shortcut| shortcut.keys == stroke.key).map(|shortcut| shortcut.act);
    // Held down, only going through rows makes sense.
    let repeats = matches!(act, Some(Act::Next | Act::Previous));
    (act.filter(|act| *act != Act::Native && (repeats || !stroke.held)), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stroke(key: &str) -> Stroke<'_> {
        Stroke { key, ..Stroke::default() }
    }

    #[test]
    fn keys_do_what_the_list_says() {
        for (key, act) in [
            ("?", Act::Help),
            ("/", Act::Filter),
            ("j", Act::Next),
            ("k", Act::Previous),
            ("x", Act::Select),
            (".", Act::Menu),
            ("c", Act::Press('c')),
            ("d", Act::Press('d')),
            ("u", Act::Press('u')),
        ] {
            assert_eq!(read(stroke(key), false, true), (Some(act), false), "{key}");
        }
        for key in ["Enter", "Esc", "Escape", "a", "J", "Tab", " ", "ArrowDown"] {
            assert_eq!(read(stroke(key), false, true), (None, false), "{key} is the browser's");
        }
    }

    #[test]
    fn g_waits_for_the_place_and_for_no_more_than_one_key() {
        assert_eq!(read(stroke("g"), false, true), (None, true));
        assert_eq!(read(stroke("j"), true, true), (Some(Act::Go('j')), false));
        assert_eq!(read(stroke("g"), true, true), (Some(Act::Go('g')), false));
        for key in ["Escape", "1", "Ä", "J"] {
            assert_eq!(read(stroke(key), true, true), (None, false), "{key}");
        }
    }

    #[test]
    fn what_is_somebody_elses_is_left_alone() {
        let others = [
            Stroke { typing: true, ..stroke("j") },
            Stroke { dialog: true, ..stroke("j") },
            Stroke { command: true, ..stroke("c") },
            Stroke { other: true, ..stroke("d") },
            Stroke { held: true, ..stroke("c") },
            Stroke { held: true, ..stroke("g") },
        ];
        for stroke in others {
            assert_eq!(read(stroke, false, true), (None, false), "{stroke:?}");
        }
        assert_eq!(read(Stroke { held: true, ..stroke("j") }, false, true).0, Some(Act::Next));
    }

    #[test]
    fn single_keys_can_be_switched_off_and_the_search_stays() {
        for key in ["?", "j", "g", "d"] {
            assert_eq!(read(stroke(key), false, false), (None, false), "{key}");
        }
        let search = Stroke { command: true, typing: true, ..stroke("k") };
        assert_eq!(read(search, false, false).0, Some(Act::Search));
        assert_eq!(read(Stroke { other: true, ..search }, false, true).0, None, "with Shift it is the browser's");
    }
}
