//! What a page knows before it asks anything: theme, language, the server's clock, and who is reading.

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
    pub fn accepted(header: &str) -> Option<Self> {
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
    /// Whether who reads may do this.
    pub fn may(&self, permission: Permission) -> bool {
        self.session.as_ref().is_some_and(|session| session.permissions.has(permission))
    }

    /// Reads the cookies `theme` and `language` out of a raw `Cookie` header; without the second, what the browser accepts
    /// decides. The rest is for the caller to fill in.
    pub fn from_headers(cookies: &str, accept_language: &str, now: Timestamp) -> Self {
        let cookie = |wanted| {
            let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
            pairs.filter(|(name, _)| *name == wanted).map(|(_, word)| word).next()
        };
        let theme = cookie("theme").and_then(Theme::parse).unwrap_or_default();
        let chosen = cookie("language").and_then(Locale::parse);
        let locale = chosen.or_else(|| Locale::accepted(accept_language)).unwrap_or_default();
        Self { theme, locale, now, ..Self::default() }
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
