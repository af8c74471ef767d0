//! The dashboard's questions, answered in process while a page is rendered on the server.

use std::future::Future;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::ids::{Attempt, JobId, UserId, WorkerId};
use app::protocol::access::{SessionView, SessionsPage, TokensPage, UserDetail, UsersPage, UsersQuery};
use app::protocol::configs::ConfigsPage;
use app::protocol::queue::{ArtifactsPage, JobView, JobsPage, JobsQuery, LogChunk, ProgressSeries};
use app::protocol::secrets::SecretsPage;
use app::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};
use app::ui::port::{Answer, Desk, Port};

use crate::http::problem::ApiError;
use crate::service::Core;
use crate::service::access::{Needs, Person};
use crate::service::refusal::Refusal;
use crate::state::App;

const WORKERS: Needs = Needs::To(Permission::AdminWorkers);
const CONFIGS: Needs = Needs::To(Permission::ConfigView);
const PEOPLE: Needs = Needs::To(Permission::AdminUsers);
const SECRETS: Needs = Needs::To(Permission::JobSubmit);

/// Asks the use cases.
pub struct ServerPort {
    app: App,
    person: Person,
    session: SessionView,
}

impl ServerPort {
    /// For one reader.
    pub fn new(app: App, person: Person, session: SessionView) -> Self {
        Self { app, person, session }
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
        let (core, person) = (self.app.core.clone(), self.person.clone());
        Box::pin(async move {
            let answer = async {
                core.permit(&person, needs, job.as_ref()).await?;
                question(core, person).await
            };
            answer.await.map_err(|refusal| ApiError::from(refusal).problem())
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

    fn job_progress(&self, id: JobId) -> Answer<ProgressSeries> {
        self.ask(Needs::SeeJob, Some(id.clone()), |core, _| async move { core.progress_series(&id).await })
    }

    fn job_artifacts(&self, id: JobId) -> Answer<ArtifactsPage> {
        self.ask(Needs::SeeJob, Some(id.clone()), |core, _| async move { core.artifacts_page(&id).await })
    }
}

impl Desk for ServerPort {
    fn tokens(&self) -> Answer<TokensPage> {
        self.ask(Needs::Login, None, |core, person| async move {
            let user = person.account()?;
            Ok(TokensPage { tokens: core.tokens_of(&user).await? })
        })
    }

    fn sessions(&self) -> Answer<SessionsPage> {
        self.ask(Needs::Login, None, |core, person| async move {
            let user = person.account()?;
            Ok(SessionsPage { sessions: core.sessions_of(&person, &user).await? })
        })
    }

    fn configs(&self) -> Answer<ConfigsPage> {
        self.ask(CONFIGS, None, |core, _| async move { core.configs().await })
    }

    fn people(&self) -> Answer<UsersPage> {
        self.ask(PEOPLE, None, |core, _| async move { core.users_page(&UsersQuery::default()).await })
    }

    fn person(&self, id: UserId) -> Answer<UserDetail> {
        self.ask(PEOPLE, None, |core, person| async move { core.user_detail(&person, &id).await })
    }

    fn secrets(&self) -> Answer<SecretsPage> {
        self.ask(SECRETS, None, |core, person| async move { core.secrets_page(&person).await })
    }
}
