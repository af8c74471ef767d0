//! What the plain pages about a job share: whose they are, and what is shown if there is none.

use std::future::Future;

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::frame::unknown;
use crate::domain::ids::JobId;
use crate::protocol::problem::Problem;
use crate::ui::erase::Erase;
use crate::ui::pages::Skeleton;
use crate::ui::pages::not_found::NotFoundPage;

/// A plain page about the job of the address: what `ask` answers, as `show` makes it.
pub(super) fn plain_page<T, F>(ask: impl Fn(JobId) -> F + Send + Sync + 'static, show: fn(T) -> AnyView) -> AnyView
where
    T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
    F: Future<Output = Result<T, Problem>> + Send + 'static,
{
    let id = use_params_map().with_untracked(|params| params.get("id")).and_then(|id| JobId::parse(&id).ok());
    let Some(id) = id else {
        return view! { <NotFoundPage/> }.erased();
    };
    let asked = Resource::new(|| (), move |()| ask(id.clone()));
    let shown = move || Suspend::new(async move { asked.await.map_or_else(unknown, show) });
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}
