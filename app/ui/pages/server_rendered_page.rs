//! Shared by server-rendered pages about one resource.

use std::future::Future;

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::not_found::not_found_problem;
use crate::protocol::problem::Problem;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;

/// A page about the resource whose id is in the address: `fetch` requests it, `show` renders it, and `show_problem`
/// renders an error.
pub(super) fn server_rendered_page<I, T, F>(
    fetch: impl Fn(I) -> F + Send + Sync + 'static,
    show: fn(T) -> AnyView,
    show_problem: fn(Problem) -> AnyView,
) -> AnyView
where
    I: TryFrom<String> + Clone + Send + Sync + 'static,
    T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
    F: Future<Output = Result<T, Problem>> + Send + 'static,
{
    let id = use_params_map().with_untracked(|params| params.get("id")).and_then(|id| I::try_from(id).ok());
    let Some(id) = id else {
        return show_problem(not_found_problem());
    };
    let resource = Resource::new(|| (), move |()| fetch(id.clone()));
    let shown = move || Suspend::new(async move { resource.await.map_or_else(show_problem, show) });
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}
