//! Server-rendered pages: sign-in, account, users, secrets, submit, new workers and others. They consist of forms and
//! of lists that rarely change, so none of their code is sent to the browser; the script in `enhance.rs` keeps them
//! current and adds shortcuts, search and notifications. Links to them from other pages are `rel="external"`.

use leptos::prelude::*;
use leptos_meta::provide_meta_context;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::{SsrMode, path};

use super::boot::Boot;
use super::components::layout::Layout;
use super::pages::account::AccountPage;
use super::pages::audit::AuditPage;
use super::pages::audit_verify::AuditVerifyPage;
use super::pages::bulk::{JobsBulkPage, WorkersBulkPage};
use super::pages::compare::vote::VotePage;
use super::pages::config::ConfigPage;
use super::pages::config_delete::ConfigDeletePage;
use super::pages::config_form::{ConfigEditPage, ConfigNewPage};
use super::pages::configs::ConfigsListPage;
use super::pages::confirm::ConfirmPage;
use super::pages::job::cancel::JobCancelPage;
use super::pages::job::configuration::JobConfigurationPage;
use super::pages::job::describe::JobDescribePage;
use super::pages::job::events::JobEventsPage;
use super::pages::job::fork::JobForkPage;
use super::pages::jobs::customize::CustomizeJobsPage;
use super::pages::jobs::log_search::JobLogsSearchPage;
use super::pages::login::LoginPage;
use super::pages::not_found::NotFoundPage;
use super::pages::passkeys::PasskeyNewPage;
use super::pages::preferences::PreferencesPage;
use super::pages::search::SearchPage;
use super::pages::second_factor::TotpPage;
use super::pages::second_step::{LoginCodePage, LoginEnrollPage};
use super::pages::secrets::SecretsPage;
use super::pages::shares::{SharesPage, TeamMemberPage, TeamNewPage, TeamPage};
use super::pages::system::SystemPage;
use super::pages::train::TrainPage;
use super::pages::usage::UsagePage;
use super::pages::user::UserDetailPage;
use super::pages::users::UserListPage;
use super::pages::worker::events::WorkerEventsPage;
use super::pages::worker::jobs::WorkerJobsPage;
use super::pages::worker_delete::WorkerDeletePage;
use super::pages::worker_edit::WorkerEditPage;
use super::pages::worker_new::WorkerNewPage;

/// The root component of server-rendered pages.
#[component]
pub fn ServerRenderedApp() -> impl IntoView {
    provide_meta_context();
    Boot::from_context().provide();
    omit_page_data();
    view! {
        <Router>
            <Routes fallback=NotFoundPage>
                <Route path=path!("/login") view=LoginPage ssr=SsrMode::Async/>
                <Route path=path!("/login/code") view=LoginCodePage ssr=SsrMode::Async/>
                <Route path=path!("/login/enrol") view=LoginEnrollPage ssr=SsrMode::Async/>
                <ParentRoute path=path!("") view=Layout ssr=SsrMode::Async>
                    <Route path=path!("/account") view=AccountPage ssr=SsrMode::Async/>
                    <Route path=path!("/account/totp") view=TotpPage ssr=SsrMode::Async/>
                    <Route path=path!("/account/passkeys/new") view=PasskeyNewPage ssr=SsrMode::Async/>
                    <Route path=path!("/configs") view=ConfigsListPage ssr=SsrMode::Async/>
                    <Route path=path!("/configs/new") view=ConfigNewPage ssr=SsrMode::Async/>
                    <Route path=path!("/configs/:name/edit") view=ConfigEditPage ssr=SsrMode::Async/>
                    <Route path=path!("/configs/:name/delete") view=ConfigDeletePage ssr=SsrMode::Async/>
                    <Route path=path!("/configs/:name") view=ConfigPage ssr=SsrMode::Async/>
                    <Route path=path!("/train") view=TrainPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/new") view=WorkerNewPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/bulk") view=WorkersBulkPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/bulk") view=JobsBulkPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/compare/vote") view=VotePage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/logs") view=JobLogsSearchPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/view") view=CustomizeJobsPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/:id/edit") view=WorkerEditPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/:id/delete") view=WorkerDeletePage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/:id/jobs") view=WorkerJobsPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/workers/:id/events") view=WorkerEventsPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id/configuration") view=JobConfigurationPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id/events") view=JobEventsPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id/describe") view=JobDescribePage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id/fork") view=JobForkPage ssr=SsrMode::Async/>
                    <Route path=path!("/jobs/:id/cancel") view=JobCancelPage ssr=SsrMode::Async/>
                    <Route path=path!("/confirm") view=ConfirmPage ssr=SsrMode::Async/>
                    <Route path=path!("/search") view=SearchPage ssr=SsrMode::Async/>
                    <Route path=path!("/preferences") view=PreferencesPage ssr=SsrMode::Async/>
                    <Route path=path!("/secrets") view=SecretsPage ssr=SsrMode::Async/>
                    <Route path=path!("/shares") view=SharesPage ssr=SsrMode::Async/>
                    <Route path=path!("/shares/new") view=TeamNewPage ssr=SsrMode::Async/>
                    <Route path=path!("/shares/:team") view=TeamPage ssr=SsrMode::Async/>
                    <Route path=path!("/shares/:team/:user") view=TeamMemberPage ssr=SsrMode::Async/>
                    <Route path=path!("/usage") view=UsagePage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/audit") view=AuditPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/audit/verify") view=AuditVerifyPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/system") view=SystemPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/users") view=UserListPage ssr=SsrMode::Async/>
                    <Route path=path!("/admin/users/:id") view=UserDetailPage ssr=SsrMode::Async/>
                </ParentRoute>
            </Routes>
        </Router>
    }
}

/// What resources read is written into a document for its hydration. Nothing reads it in these documents; it would double
/// their size, and contain what the page does not show, such as masked values.
fn omit_page_data() {
    if let Some(context) = Owner::current_shared_context() {
        context.set_is_hydrating(false);
    }
}
