//! The dashboard's questions, answered in process while a page is rendered on the server.

use std::future::Future;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::factor::Ways;
use app::domain::ids::{Attempt, JobId, UserId, WorkerId};
use app::domain::passkey::Origin;
use app::protocol::access::{SessionView, SessionsPage, TokensPage, UserDetail, UsersPage, UsersQuery};
use app::protocol::artifacts::ArtifactsPage;
use app::protocol::audit::{AuditPage, AuditQuery, AuditVerdict, JobEvents};
use app::protocol::configs::{ConfigDetail, ConfigsPage, RevisionsPage};
use app::protocol::explain::ExplanationView;
use app::protocol::factors::{FactorsView, PasskeyEnrolment, TotpEnrolment};
use app::protocol::gpus::{GpusPage, GpusQuery};
use app::protocol::history::{FleetHistory, GpuHistory, JobMetrics, Range};
use app::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogSearchQuery};
use app::protocol::notices::NoticesPage;
use app::protocol::overview::OverviewView;
use app::protocol::problem::Problem;
use app::protocol::queue::{JobView, JobsPage, JobsQuery, LogChunk};
use app::protocol::search::{SearchPage, SearchQuery};
use app::protocol::secrets::SecretsPage;
use app::protocol::submit::SubmitJob;
use app::protocol::system::SystemView;
use app::protocol::usage::{UsageQuery, UsageReport};
use app::protocol::worker_history::{PartQuery, WorkerAttempts, WorkerEvents};
use app::protocol::workers::{FleetLabels, WorkerView, WorkersPage, WorkersQuery};
use app::ui::port::{Answer, Desk, Draft, Drafted, Port, Unseen};
use app::ui::prefs::Locale;
use app::ui::told::told;
use axum::extract::Query;
use axum::http::Uri;

use super::commands::commands;
use super::forms::{self, Fields, gathered};
use crate::http::problem::ApiError;
use crate::http::request::current_id;
use crate::http::search::FINDS;
use crate::http::session::Address;
use crate::http::system;
use crate::service::Core;
use crate::service::access::{Needs, Person};
use crate::service::refusal::Refusal;
use crate::state::App;

const ACCOUNT: Needs = Needs::To(Permission::AccountManage);
const WORKERS: Needs = Needs::To(Permission::AdminWorkers);
const CONFIGS: Needs = Needs::To(Permission::ConfigView);
const EDITS: Needs = Needs::To(Permission::ConfigEdit);
const PEOPLE: Needs = Needs::To(Permission::AdminUsers);
const AUDIT: Needs = Needs::To(Permission::AdminAudit);
const SYSTEM: Needs = Needs::To(Permission::AdminSystem);
const SUBMITS: Needs = Needs::To(Permission::JobSubmit);

/// Asks the use cases.
pub struct ServerPort {
    app: App,
    person: Person,
    session: SessionView,
    locale: Locale,
    request_id: Option<String>,
}

impl ServerPort {
    /// For one reader and the page that they ask for now: what it asks may be answered in another task.
    pub fn new(app: App, person: Person, session: SessionView, locale: Locale) -> Self {
        Self { app, person, session, locale, request_id: current_id() }
    }

    /// Asks a use case, if the reader may: the same rule as the API's.
    fn ask<T, F>(
        &self,
        needs: Needs,
        job: Option<JobId>,
        question: impl FnOnce(Arc<Core>, Person) -> F + Send + 'static,
    ) -> Answer<T>
    where
        F: Future<Output = Result<T, Refusal>> + Send,
    {
        let (core, person, locale) = (self.app.core.clone(), self.person.clone(), self.locale);
        let request_id = self.request_id.clone();
        Box::pin(async move {
            let answer = async {
                core.permit(&person, needs, job.as_ref()).await?;
                question(core, person).await
            };
            answer.await.map_err(|refusal| {
                let problem = ApiError::from(refusal).problem();
                told(Problem { request_id: problem.request_id.or(request_id), ..problem }, locale)
            })
        })
    }
}

impl Port for ServerPort {
    fn session(&self) -> Answer<SessionView> {
        let session = self.session.clone();
        Box::pin(async move { Ok(session) })
    }

    fn workers(&self, query: WorkersQuery) -> Answer<WorkersPage> {
        self.ask(WORKERS, None, |core, _| async move { core.workers_page(&query).await })
    }

    fn gpus(&self, query: GpusQuery) -> Answer<GpusPage> {
        self.ask(WORKERS, None, |core, _| async move { core.gpus_page(&query).await })
    }

    fn overview(&self) -> Answer<OverviewView> {
        self.ask(WORKERS, None, |core, person| async move { core.overview(&person).await })
    }

    fn latest_events(&self, limit: u32) -> Answer<AuditPage> {
        let query = AuditQuery { limit: Some(limit), ..AuditQuery::default() };
        self.ask(AUDIT, None, |core, _| async move { core.audit_page(&query).await })
    }

    fn worker(&self, id: WorkerId) -> Answer<WorkerView> {
        self.ask(WORKERS, None, |core, _| async move { core.worker_page(&id).await })
    }

    fn jobs(&self, query: JobsQuery) -> Answer<JobsPage> {
        self.ask(Needs::SeeJobs, None, |core, person| async move { core.jobs_page(&person, &query).await })
    }

    fn job(&self, id: JobId) -> Answer<JobView> {
        self.ask(Needs::SeeJob, Some(id.clone()), |core, _| async move { core.job_detail(&id).await })
    }

    fn job_log(&self, id: JobId, attempt: Attempt, offset: Option<u64>, limit: u32) -> Answer<LogChunk> {
        self.ask(Needs::SeeJob, Some(id.clone()), move |core, _| async move {
            core.read_log(&id, Some(attempt), offset, limit).await
        })
    }

    fn job_log_lines(&self, id: JobId, query: LogLinesQuery) -> Answer<LogLines> {
        self.ask(Needs::SeeJob, Some(id.clone()), move |core, person| async move {
            core.log_lines(&person.name, &id, query).await
        })
    }

    fn job_log_search(&self, id: JobId, query: LogSearchQuery) -> Answer<LogMatches> {
        self.ask(Needs::SeeJob, Some(id.clone()), move |core, person| async move {
            core.search_log(&person.name, &id, query).await
        })
    }

    fn job_metrics(&self, id: JobId, attempt: Option<Attempt>) -> Answer<JobMetrics> {
        self.ask(Needs::SeeJob, Some(id.clone()), move |core, _| async move { core.job_metrics(&id, attempt).await })
    }

    fn job_gpus(&self, id: JobId) -> Answer<GpuHistory> {
        self.ask(Needs::SeeJob, Some(id.clone()), |core, _| async move { core.job_history(&id).await })
    }

    fn worker_gpus(&self, id: WorkerId, range: Range) -> Answer<GpuHistory> {
        self.ask(WORKERS, None, move |core, _| async move { core.worker_history(&id, range).await })
    }

    fn fleet_gpus(&self, range: Range) -> Answer<FleetHistory> {
        self.ask(WORKERS, None, move |core, _| async move { Ok(core.fleet_history(range)) })
    }

    fn job_artifacts(&self, id: JobId) -> Answer<ArtifactsPage> {
        self.ask(Needs::SeeJob, Some(id.clone()), |core, _| async move { core.artifacts_page(&id).await })
    }

    fn job_explain(&self, id: JobId) -> Answer<ExplanationView> {
        self.ask(Needs::SeeJob, Some(id.clone()), |core, _| async move { core.explain(&id).await })
    }

    fn search(&self, query: SearchQuery) -> Answer<SearchPage> {
        self.ask(Needs::AnyOf(FINDS), None, |core, person| async move { core.search(&person, &query).await })
    }
}

impl Desk for ServerPort {
    fn tokens(&self) -> Answer<TokensPage> {
        self.ask(ACCOUNT, None, |core, person| async move {
            let user = person.account()?;
            Ok(TokensPage { tokens: core.tokens_of(&user).await? })
        })
    }

    fn sessions(&self) -> Answer<SessionsPage> {
        self.ask(ACCOUNT, None, |core, person| async move { core.sessions_page(&person).await })
    }

    fn factors(&self) -> Answer<FactorsView> {
        self.ask(ACCOUNT, None, |core, person| async move { core.factors_of(&person.account()?).await })
    }

    fn totp_enrolment(&self) -> Answer<TotpEnrolment> {
        self.ask(ACCOUNT, None, |core, person| async move { core.own_enrolment(&person).await })
    }

    fn ways_to_prove(&self) -> Answer<Option<Ways>> {
        let origin = Origin::of_url(&self.session.base_url).ok();
        self.ask(Needs::Login, None, |core, person| async move { core.ways_to_prove(&person, origin).await })
    }

    fn passkey_enrolment(&self) -> Answer<PasskeyEnrolment> {
        self.ask(ACCOUNT, None, |core, person| async move { core.own_passkey_enrolment(&person).await })
    }

    fn notices(&self) -> Answer<NoticesPage> {
        self.ask(ACCOUNT, None, |core, person| async move { core.notices_page(&person).await })
    }

    fn workers_named(&self, ids: Vec<WorkerId>) -> Answer<Vec<WorkerView>> {
        self.ask(WORKERS, None, |core, _| async move { core.workers_named(&ids).await })
    }

    fn jobs_named(&self, ids: Vec<JobId>) -> Answer<Vec<JobView>> {
        self.ask(Needs::SeeJobs, None, |core, person| async move { core.jobs_named(&person, &ids).await })
    }

    fn configs(&self) -> Answer<ConfigsPage> {
        self.ask(CONFIGS, None, |core, _| async move { core.configs().await })
    }

    fn config(&self, name: String, revision: Option<u32>) -> Answer<ConfigDetail> {
        self.ask(CONFIGS, None, move |core, _| async move {
            match revision {
                Some(revision) => core.config_at(&name, revision).await,
                None => core.config(&name).await,
            }
        })
    }

    fn config_to_edit(&self, name: Option<String>) -> Answer<Option<ConfigDetail>> {
        self.ask(EDITS, None, move |core, _| async move {
            Ok(match name {
                Some(name) => Some(core.config(&name).await?),
                None => None,
            })
        })
    }

    fn revisions(&self, name: String) -> Answer<RevisionsPage> {
        self.ask(CONFIGS, None, move |core, person| async move { core.revisions(&person, &name).await })
    }

    fn fleet_labels(&self) -> Answer<FleetLabels> {
        self.ask(SUBMITS, None, |core, _| async move { core.fleet_labels().await })
    }

    fn draft(&self, query: String, typed: Option<Fields>) -> Answer<Draft> {
        let at = Address { base_url: self.session.base_url.clone(), fingerprint: self.session.fingerprint };
        self.ask(SUBMITS, None, move |core, person| async move {
            let mut fields = typed.unwrap_or_else(|| gathered(pairs(&query)));
            if forms::field(&fields, "config").is_none()
                && let Some(first) = core.configs().await?.configs.into_iter().next()
            {
                fields.insert("config".to_owned(), first.name);
            }
            let named = forms::field(&fields, "config").unwrap_or_default();
            let pinned = forms::jobs::pinned(&fields);
            let unseen = if pinned.is_some() { None } else { core.unseen_change(&person.name, named).await? };
            let unseen = unseen.map(|(last_run, newest, changed_by)| Unseen { last_run, newest, changed_by });
            let drafted = async {
                let submit = forms::jobs::asked(&person, &fields)?;
                // What has to be looked at first is shown beside the preview.
                let newest = unseen.as_ref().map(|unseen| unseen.newest).or(submit.config_revision);
                let looked_at = SubmitJob { config_revision: newest, ..submit.clone() };
                let preview = core.preview(person.name, &looked_at).await?;
                Ok(Drafted { preview, commands: commands(&submit, &at) })
            };
            let outcome = drafted.await.map_err(|refusal: Refusal| ApiError::from(refusal).problem());
            Ok(Draft { ran: forms::jobs::revision_in(&fields, "ran"), pinned, fields, outcome, unseen })
        })
    }

    fn people(&self, query: UsersQuery) -> Answer<UsersPage> {
        self.ask(PEOPLE, None, |core, _| async move { core.users_page(&query).await })
    }

    fn person(&self, id: UserId) -> Answer<UserDetail> {
        self.ask(PEOPLE, None, |core, person| async move { core.user_detail(&person, &id).await })
    }

    fn worker_attempts(&self, id: WorkerId, query: PartQuery) -> Answer<WorkerAttempts> {
        self.ask(WORKERS, None, |core, _| async move { core.worker_attempts(&id, &query).await })
    }

    fn worker_events(&self, id: WorkerId, query: PartQuery) -> Answer<WorkerEvents> {
        self.ask(WORKERS, None, |core, _| async move { core.worker_events(&id, &query).await })
    }

    fn job_events(&self, id: JobId) -> Answer<JobEvents> {
        self.ask(Needs::SeeJob, Some(id.clone()), |core, _| async move { core.job_events(&id).await })
    }

    fn job_config(&self, id: JobId) -> Answer<ConfigDetail> {
        let needs = Needs::SeeJobAnd(Permission::ConfigView);
        self.ask(needs, Some(id.clone()), |core, _| async move { core.job_config(&id).await })
    }

    fn usage(&self, query: UsageQuery) -> Answer<UsageReport> {
        self.ask(Needs::SeeJobs, None, |core, person| async move { core.usage(&person, &query).await })
    }

    fn audit(&self, query: AuditQuery) -> Answer<AuditPage> {
        self.ask(AUDIT, None, |core, _| async move { core.audit_page(&query).await })
    }

    fn verify_audit(&self) -> Answer<AuditVerdict> {
        self.ask(AUDIT, None, |core, _| async move { core.verify_audit().await })
    }

    fn system(&self) -> Answer<SystemView> {
        let app = self.app.clone();
        self.ask(SYSTEM, None, |_, _| async move { system::view(&app).await })
    }

    fn secrets(&self) -> Answer<SecretsPage> {
        self.ask(SUBMITS, None, |core, person| async move { core.secrets_page(&person).await })
    }
}

/// The pairs of a query string; what cannot be read has none.
fn pairs(query: &str) -> Vec<(String, String)> {
    let address = Uri::builder().path_and_query(format!("/?{}", query.trim_start_matches('?'))).build();
    address.ok().and_then(|address| Query::try_from_uri(&address).ok()).map(|Query(pairs)| pairs).unwrap_or_default()
}
