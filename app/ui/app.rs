//! The application: what every page shares, and which page an address shows.

use leptos::prelude::*;
use leptos_meta::provide_meta_context;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::{Lazy, SsrMode, path};
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::components::layout::Layout;
use super::components::palette::Searching;
use super::flash::{CurrentFlash, Flash};
use super::live::Live;
use super::notes::Notes;
use super::pages::jobs::JobsPage;
use super::pages::not_found::NotFoundPage;
use super::pages::overview::OverviewPage;
use super::pages::workers::WorkersPage;
use super::parts::{GpusPart, JobPart, LogPart, WorkerPart};
use super::prefs::Prefs;

/// What the server hands to the page and the page to the browser.
#[derive(Serialize, Deserialize)]
struct Boot {
    prefs: Prefs,
    flash: Option<Flash>,
}

/// The application. The server's contexts may be missing: routes are listed without them.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let boot = SharedValue::new(|| Boot {
        prefs: use_context().unwrap_or_default(),
        flash: use_context::<Option<Flash>>().flatten(),
    })
    .into_inner();
    let clock = Clock::starting_at(boot.prefs.now, boot.prefs.zone);
    provide_context(clock);
    let reader = boot.prefs.session.as_ref().map(|session| session.name.clone()).unwrap_or_default();
    provide_context(Notes::of(reader, clock));
    provide_context(Searching(RwSignal::new(false)));
    provide_context(Live::after(boot.prefs.version.clone(), boot.prefs.session.is_some()));
    provide_context(CurrentFlash(RwSignal::new(boot.flash)));
    provide_context(boot.prefs);
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
