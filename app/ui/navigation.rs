//! The main pages: one table for the navigation, its keyboard shortcuts and the search.

use super::locales::sentence::Text;
use super::locales::words::Pages;
use super::prefs::Prefs;
use crate::domain::access::Permission;
use crate::ui::glyph::Glyph;
use crate::ui::page_query::{FLEET, FLEET_GPUS};

/// A page in the navigation.
pub(crate) struct NavPage {
    pub href: &'static str,
    pub glyph: Glyph,
    pub label: fn(&Pages) -> Text,
    /// The key that opens the page after `g`.
    pub shortcut: char,
    /// The permission that is required to open it.
    pub permission: Option<Permission>,
    /// Whether the router opens it in the browser; other pages are loaded.
    pub is_client_rendered: bool,
    /// The heading in the navigation.
    pub group: NavGroup,
    /// The label in the tab bar of small screens; pages without one are in its menu.
    pub tab_bar_label: Option<fn(&Pages) -> Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavGroup {
    /// The button above the navigation.
    Action,
    Main,
    /// A view of another page: only for the search and the keyboard.
    View,
    Administration,
    /// The user's own menu.
    Account,
}

/// All pages in the order of the navigation.
const NAV_PAGES: &[NavPage] = &[
    NavPage {
        href: "/",
        glyph: Glyph::Overview,
        label: |words| words.nav.overview,
        shortcut: 'o',
        permission: None,
        is_client_rendered: true,
        group: NavGroup::Main,
        tab_bar_label: Some(|words| words.nav.overview),
    },
    NavPage {
        href: "/jobs",
        glyph: Glyph::Jobs,
        label: |words| words.nav.jobs,
        shortcut: 'j',
        permission: None,
        is_client_rendered: true,
        group: NavGroup::Main,
        tab_bar_label: Some(|words| words.nav.jobs),
    },
    NavPage {
        href: "/train",
        glyph: Glyph::Train,
        label: |words| words.nav.train,
        shortcut: 't',
        permission: Some(Permission::JobSubmit),
        is_client_rendered: false,
        group: NavGroup::Action,
        tab_bar_label: Some(|words| words.nav.train_short),
    },
    NavPage {
        href: "/configs",
        glyph: Glyph::File,
        label: |words| words.nav.configs,
        shortcut: 'c',
        permission: Some(Permission::ConfigView),
        is_client_rendered: false,
        group: NavGroup::Main,
        tab_bar_label: None,
    },
    NavPage {
        href: FLEET,
        glyph: Glyph::Workers,
        label: |words| words.fleet.title,
        shortcut: 'f',
        permission: Some(Permission::FleetView),
        is_client_rendered: true,
        group: NavGroup::Main,
        tab_bar_label: Some(|words| words.fleet.title),
    },
    NavPage {
        href: FLEET_GPUS,
        glyph: Glyph::Gpu,
        label: |words| words.gpus.title,
        shortcut: 'g',
        permission: Some(Permission::FleetView),
        is_client_rendered: true,
        group: NavGroup::View,
        tab_bar_label: None,
    },
    NavPage {
        href: "/usage",
        glyph: Glyph::Usage,
        label: |words| words.nav.usage,
        shortcut: 'u',
        permission: Some(Permission::JobViewOwn),
        is_client_rendered: false,
        group: NavGroup::Main,
        tab_bar_label: None,
    },
    NavPage {
        href: "/shares",
        glyph: Glyph::HalfCircle,
        label: |words| words.nav.shares,
        shortcut: 'h',
        permission: Some(Permission::FleetView),
        is_client_rendered: false,
        group: NavGroup::Main,
        tab_bar_label: None,
    },
    NavPage {
        href: "/admin/workers",
        glyph: Glyph::Workers,
        label: |words| words.nav.workers,
        shortcut: 'w',
        permission: Some(Permission::AdminWorkers),
        is_client_rendered: true,
        group: NavGroup::Administration,
        tab_bar_label: None,
    },
    NavPage {
        href: "/admin/users",
        glyph: Glyph::Users,
        label: |words| words.nav.users,
        shortcut: 'p',
        permission: Some(Permission::AdminUsers),
        is_client_rendered: false,
        group: NavGroup::Administration,
        tab_bar_label: None,
    },
    NavPage {
        href: "/admin/audit",
        glyph: Glyph::Shield,
        label: |words| words.nav.audit,
        shortcut: 'a',
        permission: Some(Permission::AdminAudit),
        is_client_rendered: false,
        group: NavGroup::Administration,
        tab_bar_label: None,
    },
    NavPage {
        href: "/admin/system",
        glyph: Glyph::Sliders,
        label: |words| words.nav.system,
        shortcut: 's',
        permission: Some(Permission::AdminSystem),
        is_client_rendered: false,
        group: NavGroup::Administration,
        tab_bar_label: None,
    },
    NavPage {
        href: "/secrets",
        glyph: Glyph::Key,
        label: |words| words.nav.secrets,
        shortcut: 'k',
        permission: Some(Permission::JobSubmit),
        is_client_rendered: false,
        group: NavGroup::Account,
        tab_bar_label: None,
    },
];

/// Returns the pages that the user may open.
pub(crate) fn visible_pages(prefs: &Prefs) -> impl Iterator<Item = &'static NavPage> + use<> {
    let is_single_user = prefs.session.as_ref().is_some_and(|session| session.single_user);
    let permissions = prefs.session.as_ref().map(|session| session.permissions).unwrap_or_default();
    NAV_PAGES.iter().filter(move |page| {
        let is_permitted = page.permission.is_none_or(|permission| permissions.contains(permission));
        // A server without accounts has no users to manage.
        is_permitted && !(is_single_user && page.permission == Some(Permission::AdminUsers))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_navigation_page_has_its_own_path_and_shortcut() {
        let keys: BTreeSet<char> = NAV_PAGES.iter().map(|page| page.shortcut).collect();
        let hrefs: BTreeSet<&str> = NAV_PAGES.iter().map(|page| page.href).collect();
        assert_eq!((keys.len(), hrefs.len()), (NAV_PAGES.len(), NAV_PAGES.len()));
    }

    #[test]
    fn an_unauthenticated_client_sees_only_public_pages() {
        let hrefs: Vec<_> = visible_pages(&Prefs::default()).map(|page| page.href).collect();
        assert_eq!(hrefs, ["/", "/jobs"]);
    }
}
