//! Pages that have moved: their old addresses stay valid.

use axum::http::Uri;

/// The old addresses and the new ones.
const MOVED: [(&str, &str); 1] = [("/gpus", "/fleet/gpus")];

/// Returns where a page is now, if this is its old address.
pub fn new_address(uri: &Uri) -> Option<String> {
    let (_, to) = MOVED.iter().find(|(from, _)| *from == uri.path())?;
    Some(uri.query().map_or_else(|| (*to).to_owned(), |query| format!("{to}?{query}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_kept() {
        let new_address = |from: &str| new_address(&from.parse().expect("an address"));
        assert_eq!(new_address("/gpus").as_deref(), Some("/fleet/gpus"));
        let with_query = new_address("/gpus?q=gpu%3Aa100&view=table");
        assert_eq!(with_query.as_deref(), Some("/fleet/gpus?q=gpu%3Aa100&view=table"));
        assert_eq!(new_address("/gpus/"), None);
    }
}
