//! What a page knows before its first request: the user's preferences and session, and the server's time.

use serde::{Deserialize, Serialize};

use crate::domain::access::Permission;
use crate::domain::time::Timestamp;
use crate::protocol::access::SessionView;
use crate::words::words;

/// The color theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// Always light.
    Light,
    /// Always dark.
    Dark,
    /// The system's `prefers-color-scheme`, applied by the style sheet, so that the page does not flash.
    #[default]
    System,
}

impl Theme {
    /// All themes, in the order of the switch.
    pub const ALL: [Self; 3] = [Self::Light, Self::System, Self::Dark];

    /// Returns the value in the cookie and in forms.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::System => "system",
        }
    }

    /// Parses the value.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == name)
    }

    /// Returns `data-theme` of the root element; `None` follows the system.
    pub const fn attribute(self) -> Option<&'static str> {
        match self {
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
            Self::System => None,
        }
    }
}

words!(
    /// The spacing of rows.
    #[derive(Default, Serialize, Deserialize)]
    Density {
        /// Spacious rows.
        #[default]
        Comfortable = "comfortable",
        /// As many rows as fit.
        Compact = "compact",
    }
);

words!(
    /// The time zone in which times are shown.
    #[derive(Default, Serialize, Deserialize)]
    Zone {
        /// UTC.
        Utc = "utc",
        /// The time zone of the user's browser.
        #[default]
        Local = "local",
    }
);

words!(
    /// Whether single-key shortcuts are enabled.
    #[derive(Default, Serialize, Deserialize)]
    Keys {
        /// Enabled.
        #[default]
        On = "on",
        /// Disabled, because speech input and tremors can trigger them by accident.
        Off = "off",
    }
);

/// The user's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Locale {
    /// English.
    #[default]
    En,
    /// Spanish.
    Es,
    /// Hindi.
    Hi,
    /// Japanese.
    Ja,
    /// Brazilian Portuguese.
    Pt,
    /// Simplified Chinese.
    Zh,
}

impl Locale {
    /// All languages, ordered by tag.
    pub const ALL: [Self; 6] = [Self::En, Self::Es, Self::Hi, Self::Ja, Self::Pt, Self::Zh];

    /// Returns the value of `lang` on the root element, of the cookie and of forms (BCP 47).
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Es => "es",
            Self::Hi => "hi",
            Self::Ja => "ja",
            Self::Pt => "pt-BR",
            Self::Zh => "zh",
        }
    }

    /// Returns the language's name for itself.
    pub const fn name(self) -> &'static str {
        match self {
            Self::En => "English",
            Self::Es => "Español",
            Self::Hi => "हिन्दी",
            Self::Ja => "日本語",
            Self::Pt => "Português (Brasil)",
            Self::Zh => "中文",
        }
    }

    /// Parses a tag by its primary language: `es-MX` is Spanish.
    pub fn parse(tag: &str) -> Option<Self> {
        let language = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
        let primary = language(tag.trim());
        Self::ALL.into_iter().find(|locale| language(locale.tag()) == primary)
    }

    /// Returns the supported language that a browser prefers in `Accept-Language` (RFC 9110, 12.5.4).
    pub fn from_accept_language(header: &str) -> Option<Self> {
        let weighted = header.split(',').filter_map(|range| {
            let (tag, parameters) = range.split_once(';').unwrap_or((range, ""));
            let weight = match parameters.trim().strip_prefix("q=") {
                Some(weight) => weight.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?,
                None => 1.0_f32,
            };
            Some((Self::parse(tag)?, weight))
        });
        // The first of equal weights wins.
        let best =
            weighted.filter(|(_, weight)| *weight > 0.0).reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(locale, _)| locale)
    }
}

/// The state that the server passes to every page, and the page to the browser.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prefs {
    /// The theme.
    pub theme: Theme,
    /// The language.
    pub locale: Locale,
    /// The spacing of rows.
    pub density: Density,
    /// The time zone in which times are shown.
    pub zone: Zone,
    /// The name of the time zone in which the server formatted times, if not UTC.
    pub time_zone: Option<String>,
    /// Whether single-key shortcuts are enabled.
    pub keys: Keys,
    /// Whether the user's browser runs on a Mac.
    pub mac: bool,
    /// The server's time when it rendered the page; ages are relative to it.
    pub now: Timestamp,
    /// The user's session; `None` on the sign-in page.
    pub session: Option<SessionView>,
    /// Whether there is no user yet; the sign-in page then creates the first admin.
    pub unclaimed: bool,
    /// The version of `/api/events` before the page read its data; the browser subscribes from there.
    pub version: Option<String>,
}

impl Prefs {
    /// Returns the user's name.
    pub fn reader_name(&self) -> &str {
        self.session.as_ref().map_or("", |session| session.name.as_str())
    }

    /// Returns whether the user may change a configuration that belongs to `owner`.
    #[cfg(feature = "ssr")]
    pub fn can_change_config(&self, owner: Option<&str>) -> bool {
        self.has_permission(Permission::ConfigManage)
            || self.has_permission(Permission::ConfigEdit) && owner == Some(self.reader_name())
    }

    /// Returns the modifier key of shortcuts as it is labeled on the user's keyboard.
    pub const fn command_key(&self) -> &'static str {
        if self.mac { "⌘" } else { "Ctrl" }
    }

    /// Returns whether the user has a permission.
    pub fn has_permission(&self, permission: Permission) -> bool {
        self.session.as_ref().is_some_and(|session| session.permissions.contains(permission))
    }

    /// Reads [`PREFERENCE_COOKIES`] from a raw `Cookie` header; without a language cookie, `Accept-Language` decides.
    /// The caller sets the other fields.
    pub fn from_headers(cookies: &str, accept_language: &str, now: Timestamp) -> Self {
        let cookie = |wanted_name| {
            let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
            pairs.filter(|(name, _)| *name == wanted_name).map(|(_, value)| value).next()
        };
        let theme = cookie("theme").and_then(Theme::parse).unwrap_or_default();
        let cookie_locale = cookie("language").and_then(Locale::parse);
        let locale = cookie_locale.or_else(|| Locale::from_accept_language(accept_language)).unwrap_or_default();
        let density = cookie("density").and_then(Density::parse).unwrap_or_default();
        let zone = cookie("zone").and_then(Zone::parse).unwrap_or_default();
        let keys = cookie("keys").and_then(Keys::parse).unwrap_or_default();
        Self { theme, locale, density, zone, keys, now, ..Self::default() }
    }
}

/// The cookies with the user's preferences; `POST /ui/preferences` accepts fields of the same names.
pub const PREFERENCE_COOKIES: [&str; 5] = ["theme", "language", "density", "zone", "keys"];

/// Returns the cookie that stores a preference for a year, as in `Set-Cookie`.
pub fn preference_cookie(name: &str, choice: &str) -> String {
    format!("{name}={choice}; Path=/; Max-Age=31536000; SameSite=Lax")
}

/// Returns the value to store for a preference, or `None` if it is invalid.
pub fn parse_choice(name: &str, value: &str) -> Option<&'static str> {
    match name {
        "theme" => Theme::parse(value).map(Theme::as_str),
        "language" => Locale::parse(value).map(Locale::tag),
        "density" => Density::parse(value).map(Density::as_str),
        "zone" => Zone::parse(value).map(Zone::as_str),
        "keys" => Keys::parse(value).map(Keys::as_str),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theme_comes_from_its_own_cookie_only() {
        let theme = |cookies| Prefs::from_headers(cookies, "", Timestamp(0)).theme;
        assert_eq!(theme("session=x; theme=dark"), Theme::Dark);
        assert_eq!(theme("theme=light"), Theme::Light);
        assert_eq!(theme("theme=\"><script>"), Theme::System);
        assert_eq!(theme("mytheme=dark"), Theme::System);
        assert_eq!(theme(""), Theme::System);
    }

    #[test]
    fn every_choice_is_kept_and_read_again() {
        for (name, value) in
            [("theme", "dark"), ("language", "pt-BR"), ("density", "compact"), ("zone", "utc"), ("keys", "off")]
        {
            assert_eq!(parse_choice(name, value), Some(value));
            assert!(PREFERENCE_COOKIES.contains(&name));
            let prefs = Prefs::from_headers(&format!("{name}={value}"), "", Timestamp(0));
            assert_ne!(prefs, Prefs::from_headers("", "", Timestamp(0)), "{name} changes something");
            assert_eq!(parse_choice(name, "\"><script>"), None);
        }
        assert_eq!(parse_choice("session", "x"), None);
    }

    #[test]
    fn the_language_is_chosen_or_accepted() {
        let locale = |cookies, accept| Prefs::from_headers(cookies, accept, Timestamp(0)).locale;
        assert_eq!(locale("", "es-MX,es;q=0.9,en;q=0.8"), Locale::Es);
        assert_eq!(locale("", "fr, de;q=0.9, ja;q=0.5, pt;q=0.6"), Locale::Pt);
        assert_eq!(locale("", "zh-Hant-TW"), Locale::Zh);
        assert_eq!(locale("language=hi", "es"), Locale::Hi);
        // Unknown, rejected or malformed values.
        for accept in ["", "fr", "*", "ja;q=0", "ja;q=2", "ja;q=x", ";;,,", "jav"] {
            assert_eq!(locale("language=xx", accept), Locale::En, "{accept}");
        }
    }
}
