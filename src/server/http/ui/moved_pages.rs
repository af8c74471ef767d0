//! Pages that have moved: their old addresses stay valid.

use axum::Router;
use axum::http::Uri;
use axum::response::Redirect;
use axum::routing::get;

/// The old addresses and the new ones.
const MOVED: [(&str, &str); 1] = [("/gpus", "/fleet/gpus")];

/// Returns the routes of the old addresses.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    MOVED.into_iter().fold(Router::new(), |router, (from, to)| {
        router.route(from, get(move |uri: Uri| async move { Redirect::permanent(&new_address(to, &uri)) }))
    })
}

fn new_address(to: &str, uri: &Uri) -> String {
    uri.query().map_or_else(|| to.to_owned(), |query| format!("{to}?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_kept() {
        let new_address = |from: &str| new_address("/fleet/gpus", &from.parse().expect("an address"));
        assert_eq!(new_address("/gpus"), "/fleet/gpus");
        assert_eq!(new_address("/gpus?q=gpu%3Aa100&view=table"), "/fleet/gpus?q=gpu%3Aa100&view=table");
    }
}
