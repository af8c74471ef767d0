//! The language that a client requests.

use std::convert::Infallible;

use app::domain::time::Timestamp;
use app::ui::prefs::{Locale, Prefs};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::http::operation::doc::ACCEPT_LANGUAGE_HEADER;
use crate::http::operation::signature::{DescribeInput, Signature};
use crate::http::request_context::current_locale;

/// Returns the language of a user's preferences, or of `Accept-Language`; English by default. Agents send neither:
/// their frequent requests parse nothing.
pub fn client_locale(headers: &HeaderMap) -> Locale {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match (text(header::COOKIE), text(header::ACCEPT_LANGUAGE)) {
        ("", "") => Locale::En,
        (cookies, languages) => Prefs::from_headers(cookies, languages, Timestamp::default()).locale,
    }
}

/// The language of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLanguage(pub Locale);

impl<S: Sync> FromRequestParts<S> for ClientLanguage {
    type Rejection = Infallible;

    async fn from_request_parts(_parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(current_locale()))
    }
}

impl DescribeInput for ClientLanguage {
    fn describe(signature: &mut Signature) {
        signature.headers.push(ACCEPT_LANGUAGE_HEADER);
    }
}
