//! The pages that a reader goes to by name: one table for the navigation, the keys that go there, and the search.

use super::components::icon::Glyph;
use super::locales::sentence::Text;
use super::locales::words::Pages;
use super::prefs::Prefs;
use crate::domain::access::Permission;

/// A page.
pub(crate) struct NavPage {
    pub href: &'static str,
    pub glyph: Glyph,
    pub label: fn(&Pages) -> Text,
    /// `g` and this key go there.
    pub shortcut: char,
    /// What it takes to see it.
    pub permission: Option<Permission>,
    /// Whether it lives in the browser; others are loaded.
    pub is_client_rendered: bool,
    /// Below which heading of the navigation it stands.
    pub group: NavGroup,
    /// Its name in the bar of a small screen; the others are in its menu.
    pub tab_bar_label: Option<fn(&Pages) -> Text>,
}

/// A part of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavGroup {
    Main,
    Administration,
}

/// All of them, in the order of the navigation.
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
        group: NavGroup::Main,
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
        href: "/secrets",
        glyph: Glyph::Key,
        label: |words| words.nav.secrets,
        shortcut: 'k',
        permission: Some(Permission::JobSubmit),
        is_client_rendered: false,
        group: NavGroup::Main,
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
        href: "/admin/workers",
        glyph: Glyph::Workers,
        label: |words| words.nav.workers,
        shortcut: 'w',
        permission: Some(Permission::FleetView),
        is_client_rendered: true,
        group: NavGroup::Administration,
        tab_bar_label: Some(|words| words.nav.workers),
    },
    NavPage {
        href: "/gpus",
        glyph: Glyph::Gpu,
        label: |words| words.gpus.title,
        shortcut: 'g',
        permission: Some(Permission::FleetView),
        is_client_rendered: true,
        group: NavGroup::Administration,
        tab_bar_label: None,
    },
    NavPage {
        href: "/admin/users",
        glyph: Glyph::People,
        label: |words| words.nav.people,
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
];

/// Those that a reader may see.
pub(crate) fn visible_pages(prefs: &Prefs) -> impl Iterator<Item = &'static NavPage> + use<> {
    let single = prefs.session.as_ref().is_some_and(|session| session.single_user);
    let may = prefs.session.as_ref().map(|session| session.permissions).unwrap_or_default();
    NAV_PAGES.iter().filter(move |place| {
        let allowed = place.permission.is_none_or(|permission| may.contains(permission));
        // Without accounts there are no people.
        allowed && !(single && place.permission == Some(Permission::AdminUsers))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_place_has_an_address_and_a_key_of_its_own() {
        let keys: BTreeSet<char> = NAV_PAGES.iter().map(|place| place.shortcut).collect();
        let addresses: BTreeSet<&str> = NAV_PAGES.iter().map(|place| place.href).collect();
        assert_eq!((keys.len(), addresses.len()), (NAV_PAGES.len(), NAV_PAGES.len()));
    }

    #[test]
    fn a_stranger_sees_only_what_needs_nothing() {
        let seen: Vec<_> = visible_pages(&Prefs::default()).map(|place| place.href).collect();
        assert_eq!(seen, ["/", "/jobs"]);
    }
}
