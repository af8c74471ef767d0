//! What a page knows before it asks anything: how its reader likes it, the server's clock, and who is reading.

use serde::{Deserialize, Serialize};

use crate::domain::access::Permission;
use crate::domain::time::Timestamp;
use crate::protocol::access::SessionView;

/// Light, dark, or as the reader's system says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// Always light.
    Light,
    /// Always dark.
    Dark,
    /// As `prefers-color-scheme` says; the style sheet decides, so nothing flashes.
    #[default]
    System,
}

impl Theme {
    /// Every choice, in the order of the switch.
    pub const ALL: [Self; 3] = [Self::Light, Self::System, Self::Dark];

    /// The word in the cookie and in the form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::System => "system",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == word)
    }

    /// The value of `data-theme` on the root element; none lets the system decide.
    pub const fn attribute(self) -> Option<&'static str> {
        match self {
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
            Self::System => None,
        }
    }
}

/// Declares a choice of a reader's: its words are those of the cookie and of the form.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every choice, in the order of the form.
            pub const ALL: [Self; 2] = [$(Self::$variant),+];

            /// The word in the cookie and in the form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|choice| choice.as_str() == word)
            }
        }
    };
}

choice!(
    /// How close lines stand.
    Density {
        /// With air between them.
        #[default]
        Comfortable = "comfortable",
        /// As many as fit.
        Compact = "compact",
    }
);

choice!(
    /// By which clock moments are written.
    Zone {
        /// Everybody's.
        Utc = "utc",
        /// That of the reader's browser.
        #[default]
        Local = "local",
    }
);

choice!(
    /// Whether single keys do something.
    Keys {
        /// They do.
        #[default]
        On = "on",
        /// They do not: speech input and unsteady hands press some by accident.
        Off = "off",
    }
);

/// The reader's language.
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
    /// Chinese, in simplified characters.
    Zh,
}

impl Locale {
    /// Every language, in the order of its tag.
    pub const ALL: [Self; 6] = [Self::En, Self::Es, Self::Hi, Self::Ja, Self::Pt, Self::Zh];

    /// The value of `lang` on the root element, of the cookie and of the form (BCP 47).
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

    /// Its own name for itself.
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

    /// Reads a tag: what stands before the first `-` decides, so that `es-MX` is Spanish.
    pub fn parse(tag: &str) -> Option<Self> {
        let language = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
        let wanted = language(tag.trim());
        Self::ALL.into_iter().find(|locale| language(locale.tag()) == wanted)
    }

    /// The language that a browser asks for in `Accept-Language` before all others that we have (RFC 9110, 12.5.4).
    pub fn from_accept_language(header: &str) -> Option<Self> {
        let weighed = header.split(',').filter_map(|range| {
            let (tag, parameters) = range.split_once(';').unwrap_or((range, ""));
            let weight = match parameters.trim().strip_prefix("q=") {
                Some(weight) => weight.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?,
                None => 1.0_f32,
            };
            Some((Self::parse(tag)?, weight))
        });
        // Of equal weights the first is the one.
        let best =
            weighed.filter(|(_, weight)| *weight > 0.0).reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(locale, _)| locale)
    }
}

/// Handed by the server to every page, and by the page to the browser.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prefs {
    /// The theme.
    pub theme: Theme,
    /// The language.
    pub locale: Locale,
    /// How close lines stand.
    pub density: Density,
    /// By which clock moments are written.
    pub zone: Zone,
    /// The name of the zone in which the server wrote them, if not in UTC.
    pub time_zone: Option<String>,
    /// Whether single keys do something.
    pub keys: Keys,
    /// Whether the reader's browser runs on a Mac.
    pub mac: bool,
    /// The server's clock when it made the page; ages are counted from here.
    pub now: Timestamp,
    /// Who is reading; none on the login page.
    pub session: Option<SessionView>,
    /// Whether nobody can log in yet: the login page then makes the first admin.
    pub unclaimed: bool,
    /// The version of `/api/events` before the page asked for its data: the browser listens from here on.
    pub version: Option<String>,
}

impl Prefs {
    /// The reader's name.
    pub fn reader_name(&self) -> &str {
        self.session.as_ref().map_or("", |session| session.name.as_str())
    }

    /// Whether the reader may change a configuration that belongs to `owner`.
    #[cfg(feature = "ssr")]
    pub fn can_change_config(&self, owner: Option<&str>) -> bool {
        self.has_permission(Permission::ConfigManage)
            || self.has_permission(Permission::ConfigEdit) && owner == Some(self.reader_name())
    }

    /// The key that makes a shortcut of a letter, as it is written on the reader's keyboard.
    pub const fn command_key(&self) -> &'static str {
        if self.mac { "⌘" } else { "Ctrl" }
    }

    /// Whether who reads may do this.
    pub fn has_permission(&self, permission: Permission) -> bool {
        self.session.as_ref().is_some_and(|session| session.permissions.contains(permission))
    }

    /// Reads the cookies of [`CHOICES`] out of a raw `Cookie` header; without one for the language, what the browser accepts
    /// decides. The rest is for the caller to fill in.
    pub fn from_headers(cookies: &str, accept_language: &str, now: Timestamp) -> Self {
        let cookie = |wanted| {
            let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
            pairs.filter(|(name, _)| *name == wanted).map(|(_, word)| word).next()
        };
        let theme = cookie("theme").and_then(Theme::parse).unwrap_or_default();
        let chosen = cookie("language").and_then(Locale::parse);
        let locale = chosen.or_else(|| Locale::from_accept_language(accept_language)).unwrap_or_default();
        let density = cookie("density").and_then(Density::parse).unwrap_or_default();
        let zone = cookie("zone").and_then(Zone::parse).unwrap_or_default();
        let keys = cookie("keys").and_then(Keys::parse).unwrap_or_default();
        Self { theme, locale, density, zone, keys, now, ..Self::default() }
    }
}

/// The cookies that keep a reader's choices: `POST /ui/preferences` takes fields of these names.
pub const PREFERENCE_COOKIES: [&str; 5] = ["theme", "language", "density", "zone", "keys"];

/// The word that is kept of a choice; none if there is no such choice.
pub fn parse_choice(name: &str, word: &str) -> Option<&'static str> {
    match name {
        "theme" => Theme::parse(word).map(Theme::as_str),
        "language" => Locale::parse(word).map(Locale::tag),
        "density" => Density::parse(word).map(Density::as_str),
        "zone" => Zone::parse(word).map(Zone::as_str),
        "keys" => Keys::parse(word).map(Keys::as_str),
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
        for (name, word) in
            [("theme", "dark"), ("language", "pt-BR"), ("density", "compact"), ("zone", "utc"), ("keys", "off")]
        {
            assert_eq!(parse_choice(name, word), Some(word));
            assert!(PREFERENCE_COOKIES.contains(&name));
            let read = Prefs::from_headers(&format!("{name}={word}"), "", Timestamp(0));
            assert_ne!(read, Prefs::from_headers("", "", Timestamp(0)), "{name} changes something");
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
        // What nobody has, refuses or cannot mean.
        for accept in ["", "fr", "*", "ja;q=0", "ja;q=2", "ja;q=x", ";;,,", "jav"] {
            assert_eq!(locale("language=xx", accept), Locale::En, "{accept}");
        }
    }
}
