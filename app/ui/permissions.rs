//! Permissions of the current user.

use leptos::prelude::use_context;

use super::prefs::Prefs;
use crate::domain::access::Permission;

/// Returns whether the user has a permission.
pub(crate) fn has_permission(permission: Permission) -> bool {
    use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(permission))
}

/// Returns whether the user may cancel a job of this owner.
pub(crate) fn can_cancel(owner: &str) -> bool {
    has_permission(Permission::JobCancelAll) || has_permission(Permission::JobCancelOwn) && is_reader(owner)
}

/// Returns whether the user may change name, tags and notes of a job of this owner.
pub(crate) fn can_describe(owner: &str) -> bool {
    has_permission(Permission::JobSubmit) && (has_permission(Permission::QueueManage) || is_reader(owner))
}

/// Returns whether this is the name of the user.
pub(crate) fn is_reader(owner: &str) -> bool {
    use_context::<Prefs>().is_some_and(|prefs| prefs.reader_name() == owner)
}
