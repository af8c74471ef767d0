//! Links to the actors and targets of audit entries.

use leptos::prelude::*;

use crate::domain::text::escape;
use crate::protocol::audit::{AuditPage, strip_worker_prefix};
use crate::ui::erase::Erase;
use crate::ui::format::short_id;

/// Renders an actor or target as a link to its page, with its name in the audit log; as text if it has no page.
pub(crate) fn subject_link(audit_log: &AuditPage, name: &str) -> AnyView {
    let id = strip_worker_prefix(name);
    match subject_url(id) {
        Some((page, rel)) => {
            let label = audit_log
                .worker_name(name)
                .map_or_else(|| short_id(id), |worker_name| escape(worker_name).into_owned());
            view! { <a class="quiet-link wrap-anywhere" href=page rel=rel title=name.to_owned()><bdi>{label}</bdi></a> }
                .into_erased()
        }
        None => view! { <bdi class="wrap-anywhere">{escape(name).into_owned()}</bdi> }.into_erased(),
    }
}

/// Returns the URL of the page for an ID, and the link's `rel`: `external` if the page is server-rendered. Returns none
/// for other names, such as those of users.
fn subject_url(id: &str) -> Option<(String, Option<&'static str>)> {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let (kind, rest) = id.split_once('_').filter(|_| is_plain)?;
    let (area, rel) = match kind {
        "j" => ("/jobs", None),
        "w" => ("/admin/workers", None),
        "u" => ("/admin/users", Some("external")),
        _ => return None,
    };
    (rest.len() == 26).then(|| (format!("{area}/{id}"), rel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn only_complete_ids_are_links() {
        for name in
            ["j_1", "ada", "w_ada", "javascript:alert(1)", "j_../../admin/users/u_1", "x_01HN8Z0000000000000000000X"]
        {
            assert_eq!(subject_url(name), None, "{name}");
        }
        let id = crate::domain::ids::JobId::new(Timestamp(0), [1; 10]);
        assert_eq!(subject_url(id.as_str()), Some((format!("/jobs/{id}"), None)));
    }
}
