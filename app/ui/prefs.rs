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
#[serde(rename_all = "snake_case")]
pub enum Locale {
    /// English.
    #[default]
    En,
}

impl Locale {
    /// The value of `lang` on the root element.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
        }
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

    /// Reads the cookie `theme` out of a raw `Cookie` header; the rest is for the caller to fill in.
    pub fn from_cookies(cookies: &str, now: Timestamp) -> Self {
        let theme = cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(name, _)| *name == "theme")
            .and_then(|(_, word)| Theme::parse(word))
            .unwrap_or_default();
        Self { theme, now, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theme_comes_from_its_own_cookie_only() {
        let theme = |cookies| Prefs::from_cookies(cookies, Timestamp(0)).theme;
        assert_eq!(theme("session=x; theme=dark"), Theme::Dark);
        assert_eq!(theme("theme=light"), Theme::Light);
        assert_eq!(theme("theme=\"><script>"), Theme::System);
        assert_eq!(theme("mytheme=dark"), Theme::System);
        assert_eq!(theme(""), Theme::System);
    }
}
