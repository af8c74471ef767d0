//! Keyboard shortcuts: one table for their actions and for the list that `?` shows.

use super::locales::sentence::Text;
use super::locales::words::Shell;

/// The action of a shortcut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortcutAction {
    /// Opens the command palette.
    Search,
    /// Shows the list of shortcuts.
    Help,
    /// Opens the page with this key.
    GoTo(char),
    /// Focuses the page's filter.
    Filter,
    /// Goes to the next row.
    Next,
    /// Goes to the previous row.
    Previous,
    /// Activates the element with this `data-key`: follows a link, opens a confirmation, but only focuses a button.
    Press(char),
    /// Selects the row.
    Select,
    /// Opens the row's menu.
    Menu,
    /// Handled by the browser.
    BrowserDefault,
}

/// A key, or `g` and a key, with its action.
pub(crate) struct Shortcut {
    pub keys: &'static str,
    pub action: ShortcutAction,
    pub label: fn(&Shell) -> Text,
}

/// All shortcuts except those that open a page ([`super::navigation`]), in the order of the list.
pub(crate) const SHORTCUTS: &[Shortcut] = &[
    Shortcut { keys: "Ctrl K", action: ShortcutAction::Search, label: |words| words.k_palette },
    Shortcut { keys: "?", action: ShortcutAction::Help, label: |words| words.k_help },
    Shortcut { keys: "/", action: ShortcutAction::Filter, label: |words| words.k_filter },
    Shortcut { keys: "j", action: ShortcutAction::Next, label: |words| words.k_next },
    Shortcut { keys: "k", action: ShortcutAction::Previous, label: |words| words.k_previous },
    Shortcut { keys: "Enter", action: ShortcutAction::BrowserDefault, label: |words| words.k_open },
    Shortcut { keys: "x", action: ShortcutAction::Select, label: |words| words.k_select },
    Shortcut { keys: ".", action: ShortcutAction::Menu, label: |words| words.k_menu },
    Shortcut { keys: "c", action: ShortcutAction::Press('c'), label: |words| words.k_create },
    Shortcut { keys: "d", action: ShortcutAction::Press('d'), label: |words| words.k_drain },
    Shortcut { keys: "u", action: ShortcutAction::Press('u'), label: |words| words.k_undo },
    Shortcut { keys: "Esc", action: ShortcutAction::BrowserDefault, label: |words| words.k_close },
];

/// The prefix of shortcuts that open a page.
const GO_PREFIX: &str = "g";

#[expect(clippy::struct_excessive_bools, reason = "five facts, each on its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeyPress<'k> {
    pub key: &'k str,
    /// Control, or Command on a Mac.
    pub command: bool,
    /// Another modifier: the key belongs to the browser or to an input method.
    pub other_modifier: bool,
    /// Whether the focus is in a text field.
    pub in_text_field: bool,
    /// Whether a dialog is open, which has its own keys.
    pub dialog_open: bool,
    pub is_repeat: bool,
}

/// Returns the action of a key press, and whether the next key selects a page.
///
/// Single-key shortcuts work only if enabled, and never while the user types or a dialog is open.
pub(crate) fn interpret(key_press: KeyPress<'_>, after_go: bool, single_keys: bool) -> (Option<ShortcutAction>, bool) {
    if key_press.command && !key_press.other_modifier && key_press.key.eq_ignore_ascii_case("k") {
        return (Some(ShortcutAction::Search), false);
    }
    if !single_keys || key_press.command || key_press.other_modifier || key_press.in_text_field || key_press.dialog_open
    {
        return (None, false);
    }
    if after_go {
        let mut key = key_press.key.chars();
        let page_key = key.next().filter(|c| key.next().is_none() && c.is_ascii_lowercase());
        return (page_key.map(ShortcutAction::GoTo), false);
    }
    if key_press.key == GO_PREFIX {
        return (None, !key_press.is_repeat);
    }
    let action = SHORTCUTS.iter().find(|shortcut| shortcut.keys == key_press.key).map(|shortcut| shortcut.action);
    // Only moving between rows repeats while the key is held down.
    let can_repeat = matches!(action, Some(ShortcutAction::Next | ShortcutAction::Previous));
    (action.filter(|action| *action != ShortcutAction::BrowserDefault && (can_repeat || !key_press.is_repeat)), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_press(key: &str) -> KeyPress<'_> {
        KeyPress { key, ..KeyPress::default() }
    }

    #[test]
    fn shortcuts_match_their_list() {
        for (key, action) in [
            ("?", ShortcutAction::Help),
            ("/", ShortcutAction::Filter),
            ("j", ShortcutAction::Next),
            ("k", ShortcutAction::Previous),
            ("x", ShortcutAction::Select),
            (".", ShortcutAction::Menu),
            ("c", ShortcutAction::Press('c')),
            ("d", ShortcutAction::Press('d')),
            ("u", ShortcutAction::Press('u')),
        ] {
            assert_eq!(interpret(key_press(key), false, true), (Some(action), false), "{key}");
        }
        for key in ["Enter", "Esc", "Escape", "a", "J", "Tab", " ", "ArrowDown"] {
            assert_eq!(interpret(key_press(key), false, true), (None, false), "{key} is the browser's");
        }
    }

    #[test]
    fn g_waits_for_one_more_key() {
        assert_eq!(interpret(key_press("g"), false, true), (None, true));
        assert_eq!(interpret(key_press("j"), true, true), (Some(ShortcutAction::GoTo('j')), false));
        assert_eq!(interpret(key_press("g"), true, true), (Some(ShortcutAction::GoTo('g')), false));
        for key in ["Escape", "1", "Ä", "J"] {
            assert_eq!(interpret(key_press(key), true, true), (None, false), "{key}");
        }
    }

    #[test]
    fn keys_of_browser_and_fields_are_left_alone() {
        let ignored = [
            KeyPress { in_text_field: true, ..key_press("j") },
            KeyPress { dialog_open: true, ..key_press("j") },
            KeyPress { command: true, ..key_press("c") },
            KeyPress { other_modifier: true, ..key_press("d") },
            KeyPress { is_repeat: true, ..key_press("c") },
            KeyPress { is_repeat: true, ..key_press("g") },
        ];
        for key_press in ignored {
            assert_eq!(interpret(key_press, false, true), (None, false), "{key_press:?}");
        }
        assert_eq!(
            interpret(KeyPress { is_repeat: true, ..key_press("j") }, false, true).0,
            Some(ShortcutAction::Next)
        );
    }

    #[test]
    fn single_keys_can_be_switched_off_and_the_search_stays() {
        for key in ["?", "j", "g", "d"] {
            assert_eq!(interpret(key_press(key), false, false), (None, false), "{key}");
        }
        let search = KeyPress { command: true, in_text_field: true, ..key_press("k") };
        assert_eq!(interpret(search, false, false).0, Some(ShortcutAction::Search));
        assert_eq!(
            interpret(KeyPress { other_modifier: true, ..search }, false, true).0,
            None,
            "with Shift it is the browser's"
        );
    }
}
