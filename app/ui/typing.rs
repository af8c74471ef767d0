//! Requests while a user types.

use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::backend::{BackendFuture, SharedBackend};
use super::schedule::after;

/// The pause in typing after which the server is queried.
const DEBOUNCE: Duration = Duration::from_millis(120);

/// Queries the server after a pause in typing, and sets `found`: to nothing if there is no query. After an error, what
/// was found before stays.
pub(crate) fn query_while_typing<Q: 'static, T: Default + Send + Sync + 'static>(
    query: impl Fn() -> Option<Q> + 'static,
    send: impl Fn(&SharedBackend, Q) -> BackendFuture<T> + Copy + 'static,
    found: RwSignal<T>,
) {
    let backend = use_context::<SharedBackend>();
    let last_request = StoredValue::new(0_u32);
    Effect::new(move |_| {
        let query = query();
        let number = last_request.get_value() + 1;
        last_request.set_value(number);
        let Some((query, backend)) = query.zip(backend.clone()) else {
            found.set(T::default());
            return;
        };
        after(DEBOUNCE, last_request, move || {
            if last_request.get_value() != number {
                return;
            }
            let response = send(&backend, query);
            spawn_local(async move {
                if let (Ok(result), true) = (response.await, last_request.try_get_value() == Some(number)) {
                    found.try_set(result);
                }
            });
        });
    });
}
