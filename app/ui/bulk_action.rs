//! The actions on several items: one row for each, from which the lists, the page that confirms them and its message
//! are built.

use super::glyph::Glyph;
use super::locales::Language;
#[cfg(feature = "ssr")]
use super::locales::sentence::Count;
use super::locales::sentence::Text;
#[cfg(feature = "ssr")]
use super::locales::words::ServerPagesBulk;
use super::permissions::has_permission;
use crate::domain::access::Permission;
use crate::protocol::status::{BulkAction, BulkTarget};

/// How an action is presented.
pub(crate) struct BulkActionRow {
    /// The permission without which the list does not offer it.
    pub permission: Permission,
    /// The label of its button in the list.
    pub label: fn(&Language) -> Text,
    pub glyph: Glyph,
    /// The shortcut key that focuses the button.
    pub key: Option<&'static str>,
    #[cfg(feature = "ssr")]
    pub confirmation: BulkConfirmation,
}

/// How an action is confirmed, and what is reported of it.
#[cfg(feature = "ssr")]
pub(crate) struct BulkConfirmation {
    /// The class of the button that confirms it.
    pub class: &'static str,
    /// The action that undoes it.
    pub opposite: Option<BulkAction>,
    pub texts: fn(&ServerPagesBulk) -> BulkTexts,
}

/// The sentences of an action.
#[cfg(feature = "ssr")]
pub(crate) struct BulkTexts {
    /// The action on a number of items, for headings and buttons.
    pub count: Count,
    /// Its consequences; may be empty.
    pub consequence: Text,
    /// The number of items that were changed.
    pub done: Count,
}

/// Returns the row of an action.
pub(crate) const fn bulk_action_row(action: BulkAction) -> BulkActionRow {
    match action {
        BulkAction::Drain => BulkActionRow {
            permission: Permission::AdminWorkers,
            label: |words| words.worker.drain,
            glyph: Glyph::Drain,
            key: Some("d"),
            #[cfg(feature = "ssr")]
            confirmation: BulkConfirmation {
                class: "btn btn-primary",
                opposite: Some(BulkAction::Resume),
                texts: |words| BulkTexts { count: words.drain, consequence: words.drain_text, done: words.drained },
            },
        },
        BulkAction::Resume => BulkActionRow {
            permission: Permission::AdminWorkers,
            label: |words| words.worker.resume,
            glyph: Glyph::Play,
            key: None,
            #[cfg(feature = "ssr")]
            confirmation: BulkConfirmation {
                class: "btn btn-primary",
                opposite: Some(BulkAction::Drain),
                texts: |words| BulkTexts { count: words.resume, consequence: "", done: words.resumed },
            },
        },
        BulkAction::Delete => BulkActionRow {
            permission: Permission::AdminWorkers,
            label: |words| words.selection.delete,
            glyph: Glyph::Trash,
            key: None,
            #[cfg(feature = "ssr")]
            confirmation: BulkConfirmation {
                class: "btn btn-error",
                opposite: None,
                texts: |words| BulkTexts {
                    count: words.delete,
                    consequence: words.delete_text,
                    done: words.deleted_workers,
                },
            },
        },
        BulkAction::Cancel => BulkActionRow {
            permission: Permission::JobCancelOwn,
            label: |words| words.selection.cancel,
            glyph: Glyph::StopCircle,
            key: None,
            #[cfg(feature = "ssr")]
            confirmation: BulkConfirmation {
                class: "btn btn-error",
                opposite: None,
                texts: |words| BulkTexts { count: words.cancel, consequence: words.cancel_text, done: words.cancelled },
            },
        },
        BulkAction::Retry => BulkActionRow {
            permission: Permission::JobSubmit,
            label: |words| words.work.retry,
            glyph: Glyph::Play,
            key: None,
            #[cfg(feature = "ssr")]
            confirmation: BulkConfirmation {
                class: "btn btn-primary",
                opposite: None,
                texts: |words| BulkTexts { count: words.retry, consequence: words.retry_text, done: words.retried },
            },
        },
    }
}

/// Returns the actions on items of a list that the user may perform.
pub(crate) fn permitted_actions(target: BulkTarget) -> Vec<BulkAction> {
    let actions = BulkAction::ALL.into_iter().filter(|action| action.target() == target);
    actions.filter(|action| has_permission(bulk_action_row(*action).permission)).collect()
}
