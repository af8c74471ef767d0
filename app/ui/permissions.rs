//! What the reader of a page may do.

use leptos::prelude::use_context;

use super::prefs::Prefs;
use crate::domain::access::Permission;

/// Whether who reads may do this.
pub(crate) fn has_permission(permission: Permission) -> bool {
    use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(permission))
}

/// Whether who reads may cancel a job that this person has submitted.
pub(crate) fn can_cancel(owner: &str) -> bool {
    has_permission(Permission::JobCancelAll)
        || has_permission(Permission::JobCancelOwn)
            && use_context::<Prefs>().is_some_and(|prefs| prefs.reader_name() == owner)
}
