//! The pages that a reader goes to by name: one table for the navigation, the keys that go there, and the search.

use super::components::icon::Glyph;
use super::locales::sentence::Text;
use super::locales::words::Pages;
use super::prefs::Prefs;
use crate::domain::access::Permission;

/// A page.
pub(crate) struct Place {
    pub href: &'static str,
    pub glyph: Glyph,
    pub label: fn(&Pages) -> Text,
    /// `g` and this key go there.
    pub key: char,
    /// What it takes to see it.
    pub needs: Option<Permission>,
    /// Whether it lives in the browser; others are loaded.
    pub live: bool,
    /// Below which heading of the navigation it stands.
    pub group: Group,
    /// Its name in the bar of a small screen; the others are in its menu.
    pub bar: Option<fn(&Pages) -> Text>,
}

/// A part of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Main,
    Administration,
}

/// All of them, in the order of the navigation.
const PLACES: &[Place] = &[
    Place {
        href: "/",
        glyph: Glyph::Overview,
        label: |words| words.nav.overview,
        key: 'o',
        needs: None,
        live: true,
        group: Group::Main,
        bar: Some(|words| words.nav.overview),
    },
    Place {
        href: "/jobs",
        glyph: Glyph::Jobs,
        label: |words| words.nav.jobs,
        key: 'j',
        needs: None,
        live: true,
        group: Group::Main,
        bar: Some(|words| words.nav.jobs),
    },
    Place {
        href: "/train",
        glyph: Glyph::Train,
        label: |words| words.nav.train,
        key: 't',
        needs: Some(Permission::JobSubmit),
        live: false,
        group: Group::Main,
        bar: Some(|words| words.nav.train_short),
    },
    Place {
        href: "/configs",
        glyph: Glyph::File,
        label: |words| words.nav.configs,
        key: 'c',
        needs: Some(Permission::ConfigView),
        live: false,
        group: Group::Main,
        bar: None,
    },
    Place {
        href: "/secrets",
        glyph: Glyph::Key,
        label: |words| words.nav.secrets,
        key: 'k',
        needs: Some(Permission::JobSubmit),
        live: false,
        group: Group::Main,
        bar: None,
    },
    Place {
        href: "/usage",
        glyph: Glyph::Usage,
        label: |words| words.nav.usage,
        key: 'u',
        needs: Some(Permission::JobViewOwn),
        live: false,
        group: Group::Main,
        bar: None,
    },
    Place {
        href: "/admin/workers",
        glyph: Glyph::Workers,
        label: |words| words.nav.workers,
        key: 'w',
        needs: Some(Permission::AdminWorkers),
        live: true,
        group: Group::Administration,
        bar: Some(|words| words.nav.workers),
    },
    Place {
        href: "/gpus",
        glyph: Glyph::Gpu,
        label: |words| words.gpus.title,
        key: 'g',
        needs: Some(Permission::AdminWorkers),
        live: true,
        group: Group::Administration,
        bar: None,
    },
    Place {
        href: "/admin/users",
        glyph: Glyph::People,
        label: |words| words.nav.people,
        key: 'p',
        needs: Some(Permission::AdminUsers),
        live: false,
        group: Group::Administration,
        bar: None,
    },
    Place {
        href: "/admin/audit",
        glyph: Glyph::Shield,
        label: |words| words.nav.audit,
        key: 'a',
        needs: Some(Permission::AdminAudit),
        live: false,
        group: Group::Administration,
        bar: None,
    },
    Place {
        href: "/admin/system",
        glyph: Glyph::Sliders,
        label: |words| words.nav.system,
        key: 's',
        needs: Some(Permission::AdminSystem),
        live: false,
        group: Group::Administration,
        bar: None,
    },
];

/// Those that a reader may see.
pub(crate) fn places(prefs: &Prefs) -> impl Iterator<Item = &'static Place> + use<> {
    let single = prefs.session.as_ref().is_some_and(|session| session.single_user);
    let may = prefs.session.as_ref().map(|session| session.permissions).unwrap_or_default();
    PLACES.iter().filter(move |place| {
        let allowed = place.needs.is_none_or(|permission| may.has(permission));
        // Without accounts there are no people.
        allowed && !(single && place.needs == Some(Permission::AdminUsers))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_place_has_an_address_and_a_key_of_its_own() {
        let keys: BTreeSet<char> = PLACES.iter().map(|place| place.key).collect();
        let addresses: BTreeSet<&str> = PLACES.iter().map(|place| place.href).collect();
        assert_eq!((keys.len(), addresses.len()), (PLACES.len(), PLACES.len()));
    }

    #[test]
    fn a_stranger_sees_only_what_needs_nothing() {
        let seen: Vec<_> = places(&Prefs::default()).map(|place| place.href).collect();
        assert_eq!(seen, ["/", "/jobs"]);
    }
}
