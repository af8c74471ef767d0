//! The root component: shared context and the routes of all hydrated pages.

use leptos::prelude::*;
use leptos_meta::provide_meta_context;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::{Lazy, SsrMode, path};

use super::boot::Boot;
use super::components::layout::Layout;
use super::lazy_routes::{
    CompareRoute, FleetRoute, GpusRoute, JobRoute, JobsRoute, LogRoute, WorkerRoute, WorkersRoute,
};
use super::pages::not_found::NotFoundPage;
use super::pages::overview::OverviewPage;

/// The root component of hydrated pages.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    SharedValue::new(Boot::from_context).into_inner().provide();
    view! {
        <Router>
            <Routes fallback=NotFoundPage>
                <ParentRoute path=path!("") view=Layout ssr=SsrMode::Async>
                    <Route path=path!("/") view=OverviewPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs") view={Lazy::<JobsRoute>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/compare") view={Lazy::<CompareRoute>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id") view={Lazy::<JobRoute>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id/log") view={Lazy::<LogRoute>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/fleet") view={Lazy::<FleetRoute>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/fleet/gpus") view={Lazy::<GpusRoute>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers") view={Lazy::<WorkersRoute>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/:id") view={Lazy::<WorkerRoute>::new()} ssr=SsrMode::Async/>
                </ParentRoute>
            </Routes>
        </Router>
    }
}
