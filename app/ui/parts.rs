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
use super::pages::worker::WorkerPage;

/// The GPUs of the fleet.
pub(crate) struct GpusPart;

#[lazy_route]
impl LazyRoute for GpusPart {
    fn data() -> Self {
        Self
    }

    fn view(this: Self) -> AnyView {
        let GpusPart = this;
        view! { <GpusPage/> }.erased()
    }
}

/// One job.
pub(crate) struct JobPart;

#[lazy_route]
impl LazyRoute for JobPart {
    fn data() -> Self {
        Self
    }

    fn view(this: Self) -> AnyView {
        let JobPart = this;
        view! { <JobPage/> }.erased()
    }
}

/// The log of a job.
pub(crate) struct LogPart;

#[lazy_route]
impl LazyRoute for LogPart {
    fn data() -> Self {
        Self
    }

    fn view(this: Self) -> AnyView {
        let LogPart = this;
        view! { <JobLogPage/> }.erased()
    }
}

/// One worker.
pub(crate) struct WorkerPart;

#[lazy_route]
impl LazyRoute for WorkerPart {
    fn data() -> Self {
        Self
    }

    fn view(this: Self) -> AnyView {
        let WorkerPart = this;
        view! { <WorkerPage/> }.erased()
    }
}

/// Fetches what the page at this path needs; the paths are those of the lazy routes in [`super::app`].
#[cfg(feature = "hydrate")]
pub(crate) async fn before(path: &str) {
    let mut places = path.trim_matches('/').split('/');
    match [places.next(), places.next(), places.next()] {
        [Some("gpus"), None, None] => GpusPart::preload().await,
        [Some("jobs"), Some(_), None] => JobPart::preload().await,
        [Some("jobs"), Some(_), Some("log")] => LogPart::preload().await,
        [Some("admin"), Some("workers"), Some(_)] => WorkerPart::preload().await,
        _ => {}
    }
}
