//! Pages whose code is a separate file, fetched when one of them is first opened, so that
//! visits without them stay light.
//!
//! Hydration is synchronous ([`super::erase`]), so the browser fetches the code of the initial page first (`preload`);
//! for later pages the router fetches it.

use leptos::prelude::*;
use leptos_router::{LazyRoute, lazy_route};

use super::erase::Erase;
use super::pages::compare::ComparePage;
use super::pages::gpus::GpusPage;
use super::pages::job::JobPage;
use super::pages::job_log::JobLogPage;
use super::pages::jobs::JobsPage;
use super::pages::worker::WorkerPage;
use super::pages::workers::{FleetPage, WorkersPage};

/// Declares a lazy route for a page.
macro_rules! lazy_page_route {
    ($(#[$about:meta])* $route:ident, $page:ident) => {
        $(#[$about])*
        pub(crate) struct $route;

        #[lazy_route]
        impl LazyRoute for $route {
            fn data() -> Self {
                Self
            }

            fn view(this: Self) -> AnyView {
                let $route = this;
                view! { <$page/> }.into_erased()
            }
        }
    };
}

lazy_page_route!(
    /// The lazy route of the page that compares jobs.
    CompareRoute,
    ComparePage
);
lazy_page_route!(
    /// The lazy route of the fleet.
    FleetRoute,
    FleetPage
);
lazy_page_route!(
    /// The lazy route of the GPUs page.
    GpusRoute,
    GpusPage
);
lazy_page_route!(
    /// The lazy route of the list of jobs.
    JobsRoute,
    JobsPage
);
lazy_page_route!(
    /// The lazy route of the page of a job.
    JobRoute,
    JobPage
);
lazy_page_route!(
    /// The lazy route of the log page of a job.
    LogRoute,
    JobLogPage
);
lazy_page_route!(
    /// The lazy route of the page of a worker.
    WorkerRoute,
    WorkerPage
);
lazy_page_route!(
    /// The lazy route of the list of workers.
    WorkersRoute,
    WorkersPage
);

/// Fetches the code of the page at this path. The paths are those of the lazy routes in [`super::app`].
#[cfg(feature = "hydrate")]
pub(crate) async fn preload(path: &str) {
    let mut segments = path.trim_matches('/').split('/');
    match [segments.next(), segments.next(), segments.next()] {
        [Some("fleet"), None, None] => FleetRoute::preload().await,
        [Some("fleet"), Some("gpus"), None] => GpusRoute::preload().await,
        [Some("jobs"), None, None] => JobsRoute::preload().await,
        [Some("jobs"), Some("compare"), None] => CompareRoute::preload().await,
        [Some("jobs"), Some(_), None] => JobRoute::preload().await,
        [Some("jobs"), Some(_), Some("log")] => LogRoute::preload().await,
        [Some("admin"), Some("workers"), Some(_)] => WorkerRoute::preload().await,
        [Some("admin"), Some("workers"), None] => WorkersRoute::preload().await,
        _ => {}
    }
}
