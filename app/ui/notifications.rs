//! Notifications about actions and errors in this tab: shown as toasts, and stored in a
//! history until the tab is closed.

use std::time::Duration;

use leptos::prelude::*;

use super::browser;
use super::clock::{PageClock, use_clock};
use super::flash::Undo;
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::schedule::after;

/// The size of the history.
const MAX_HISTORY: usize = 20;
/// How long the toast of a success is shown. Errors remain until they are dismissed.
const TOAST_DURATION: Duration = Duration::from_secs(8);
/// How long a toast with an undo is shown.
const UNDO_TOAST_DURATION: Duration = Duration::from_secs(30);

/// An entry of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notification {
    pub at: Timestamp,
    pub text: String,
    pub is_error: bool,
    /// The ID to quote when reporting an error.
    pub request_id: Option<String>,
}

/// A notification that is currently shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toast {
    pub id: usize,
    pub notification: Notification,
    pub undo: Option<Undo>,
}

/// The toasts and the history of a tab.
#[derive(Clone, Copy)]
pub(crate) struct Notifications {
    pub history: RwSignal<Vec<Notification>>,
    pub toasts: RwSignal<Vec<Toast>>,
    last_id: StoredValue<usize>,
    user_name: StoredValue<String>,
    clock: PageClock,
}

impl Notifications {
    /// Creates the notifications of a page and restores the user's history from this tab.
    pub fn new(user_name: String, clock: PageClock) -> Self {
        let notifications = Self {
            history: RwSignal::default(),
            toasts: RwSignal::default(),
            last_id: StoredValue::new(0),
            user_name: StoredValue::new(user_name),
            clock,
        };
        Effect::new(move |_| {
            let saved =
                notifications.user_name.with_value(|user_name| decode(&browser::load_notifications(), user_name));
            notifications.history.update(|history| history.splice(0..0, saved).for_each(drop));
        });
        notifications
    }

    /// Shows a success, with its undo if there is one.
    pub fn success(self, text: impl Into<String>, undo: Option<Undo>) {
        let duration = if undo.is_some() { UNDO_TOAST_DURATION } else { TOAST_DURATION };
        let id = self.show_toast(
            Notification { at: self.clock.now_untracked(), text: text.into(), is_error: false, request_id: None },
            undo,
        );
        self.dismiss_later(id, duration);
    }

    /// Shows an error.
    pub fn error(self, problem: Problem) {
        let at = self.clock.now_untracked();
        self.show_toast(
            Notification { at, text: problem.detail, is_error: true, request_id: problem.request_id },
            None,
        );
    }

    /// Records a message that is shown elsewhere.
    pub fn record(self, text: impl Into<String>, is_error: bool) {
        self.add_to_history(Notification {
            at: self.clock.now_untracked(),
            text: text.into(),
            is_error,
            request_id: None,
        });
    }

    /// Removes a toast.
    pub fn dismiss(self, id: usize) {
        self.toasts.update(|toasts| toasts.retain(|toast| toast.id != id));
    }

    fn show_toast(self, notification: Notification, undo: Option<Undo>) -> usize {
        let id = self.last_id.get_value() + 1;
        self.last_id.set_value(id);
        self.add_to_history(notification.clone());
        self.toasts.update(|toasts| toasts.push(Toast { id, notification, undo }));
        id
    }

    fn add_to_history(self, notification: Notification) {
        self.history.update(|history| {
            history.push(notification);
            let excess = history.len().saturating_sub(MAX_HISTORY);
            history.drain(..excess);
        });
        let text =
            self.history.with_untracked(|history| self.user_name.with_value(|user_name| encode(history, user_name)));
        browser::save_notifications(&text);
    }

    /// Removes a toast after a delay, but not while it is hovered or focused.
    fn dismiss_later(self, id: usize, duration: Duration) {
        after(duration, self.toasts, move || {
            if browser::is_hovered_or_focused(".toasts") {
                self.dismiss_later(id, duration);
            } else {
                self.dismiss(id);
            }
        });
    }
}

/// Returns the notifications of the page.
pub(crate) fn use_notifications() -> Notifications {
    use_context().unwrap_or_else(|| Notifications::new(String::new(), use_clock()))
}

/// Encodes the history for storage: the user's name, then one notification per line.
fn encode(notifications: &[Notification], user_name: &str) -> String {
    let single_line = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let encode_entry = |Notification { at, text, is_error, request_id }: &Notification| {
        let id = request_id.as_deref().unwrap_or_default();
        format!("{}\t{}\t{}\t{}", at.0, u8::from(*is_error), single_line(id), single_line(text))
    };
    std::iter::once(single_line(user_name)).chain(notifications.iter().map(encode_entry)).collect::<Vec<_>>().join("\n")
}

/// Decodes the history; that of another user is ignored.
fn decode(stored: &str, user_name: &str) -> Vec<Notification> {
    let mut lines = stored.split('\n');
    if lines.next() != Some(user_name) {
        return Vec::new();
    }
    let parse_entry = |line: &str| {
        let mut parts = line.splitn(4, '\t');
        let at = Timestamp(parts.next()?.parse().ok()?);
        let (is_error, id, text) = (parts.next()? == "1", parts.next()?, parts.next()?);
        let request_id = Some(id.to_owned()).filter(|id| !id.is_empty());
        Some(Notification { at, text: text.to_owned(), is_error, request_id })
    };
    lines.filter_map(parse_entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_readable_by_their_user_only() {
        let notification = |text: &str, is_error, id: Option<&str>| Notification {
            at: Timestamp(1_700_000_000_000),
            text: text.to_owned(),
            is_error,
            request_id: id.map(str::to_owned),
        };
        let notifications =
            [notification("Priority updated.", false, None), notification("<b> & so on", true, Some("req_1"))];
        let stored = encode(&notifications, "ada");
        assert_eq!(decode(&stored, "ada"), notifications);
        assert_eq!(decode(&stored, "eve"), []);
        assert_eq!(decode("", "ada"), []);
        assert_eq!(decode("ada\nnonsense\n1\t2", "ada"), []);
        let with_line_breaks = encode(&[notification("two\nlines\tand tabs", false, None)], "ada");
        assert_eq!(decode(&with_line_breaks, "ada"), [notification("two lines and tabs", false, None)]);
    }
}
