//! The pages whose program is a file of its own, fetched when one of them is opened first: what most visits never see weighs on
//! none of them.
//!
//! Hydration happens at once or not at all ([`super::erase`]), so the browser fetches the part of the page that it was sent before
//! it begins ([`before`]); of a page that is gone to later the router fetches it by itself.

use leptos::prelude::*;
use leptos_router::{LazyRoute, lazy_route};

use super::erase::Erase;
use super::pages::gpus::GpusPage;
use super::pages::job::JobPage;
use super::pages::job_log::JobLogPage;
use super::pages::jobs::JobsPage;
use super::pages::worker::WorkerPage;
use super::pages::workers::WorkersPage;

/// A page as such a part.
macro_rules! part {
    ($(#[$about:meta])* $part:ident, $page:ident) => {
        $(#[$about])*
        pub(crate) struct $part;

        #[lazy_route]
        impl LazyRoute for $part {
            fn data() -> Self {
                Self
            }

            fn view(this: Self) -> AnyView {
                let $part = this;
                view! { <$page/> }.into_erased()
            }
        }
    };
}

part!(
    /// The GPUs of the fleet.
    GpusRoute,
    GpusPage
);
part!(
    /// The jobs.
    JobsRoute,
    JobsPage
);
part!(
    /// One job.
    JobRoute,
    JobPage
);
part!(
    /// The log of a job.
    LogRoute,
    JobLogPage
);
part!(
    /// One worker.
    WorkerRoute,
    WorkerPage
);
part!(
    /// The workers.
    WorkersRoute,
    WorkersPage
);

/// Fetches what the page at this path needs; the paths are those of the lazy routes in [`super::app`].
#[cfg(feature = "hydrate")]
pub(crate) async fn preload(path: &str) {
    let mut places = path.trim_matches('/').split('/');
    match [places.next(), places.next(), places.next()] {
        [Some("gpus"), None, None] => GpusRoute::preload().await,
        [Some("jobs"), None, None] => JobsRoute::preload().await,
        [Some("jobs"), Some(_), None] => JobRoute::preload().await,
        [Some("jobs"), Some(_), Some("log")] => LogRoute::preload().await,
        [Some("admin"), Some("workers"), Some(_)] => WorkerRoute::preload().await,
        [Some("admin"), Some("workers"), None] => WorkersRoute::preload().await,
        _ => {}
    }
}
