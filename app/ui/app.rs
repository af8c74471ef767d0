//! The application: what every page shares, and which page an address shows.

use leptos::prelude::*;
use leptos_meta::provide_meta_context;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::{Lazy, SsrMode, path};

use super::boot::Boot;
use super::components::layout::Layout;
use super::pages::jobs::JobsPage;
use super::pages::not_found::NotFoundPage;
use super::pages::overview::OverviewPage;
use super::pages::workers::WorkersPage;
use super::parts::{GpusPart, JobPart, LogPart, WorkerPart};

/// The application.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    SharedValue::new(Boot::given).into_inner().provide();
    view! {
        <Router>
            <Routes fallback=NotFoundPage>
                <ParentRoute path=path!("") view=Layout ssr=SsrMode::Async>
                    <Route path=path!("/") view=OverviewPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs") view=JobsPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id") view={Lazy::<JobPart>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id/log") view={Lazy::<LogPart>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/gpus") view={Lazy::<GpusPart>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers") view=WorkersPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/:id") view={Lazy::<WorkerPart>::new()} ssr=SsrMode::Async/>
                </ParentRoute>
            </Routes>
        </Router>
    }
}
