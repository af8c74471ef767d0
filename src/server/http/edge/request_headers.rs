//! Parses request headers.

use axum::http::{HeaderMap, header};

/// Returns a header's value if it is valid text.
pub fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the token of an `Authorization: Bearer …` header.
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = header_text(headers, header::AUTHORIZATION.as_str())?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Returns the value of a cookie.
pub fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

/// Returns the key by which a repeated request is recognized.
pub fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    headers.get("idempotency-key").map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.parse().expect("a name"), value.parse().expect("a header"))).collect()
    }

    #[test]
    fn tokens_and_cookies() {
        for (value, token) in [("Bearer a", Some("a")), ("bEARER  a ", Some("a")), ("Bearer", None), ("Basic a", None)]
        {
            assert_eq!(bearer_token(&headers("authorization", &[value])), token, "{value}");
        }
        let cookies = headers("cookie", &["asid=1; sid =2", "x; sid=3=3;sid=4"]);
        assert_eq!((cookie(&cookies, "sid"), cookie(&cookies, "x")), (Some("3=3"), None));
    }
}
