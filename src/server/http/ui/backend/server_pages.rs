//! What only server-rendered pages read.

use app::domain::access::Permission;
use app::domain::ids::{JobId, UserId, WorkerId};
use app::domain::passkey::PasskeyOrigin;
use app::domain::second_factor::AvailableFactors;
use app::domain::time::Millis;
use app::protocol::access::factors::{FactorsView, PasskeyEnrollment, TotpEnrollment};
use app::protocol::access::notices::NoticesPage;
use app::protocol::access::{SessionsPage, TokensPage, UserDetail, UsersPage, UsersQuery};
use app::protocol::audit::{AuditPage, AuditQuery, AuditVerification, JobEvents};
use app::protocol::configs::{ConfigDetail, ConfigsPage, RevisionsPage};
use app::protocol::jobs::log_search::{JobLogsPage, JobLogsQuery};
use app::protocol::jobs::votes::SampleVotes;
use app::protocol::jobs::{JobColumns, JobView, SubmitJob};
use app::protocol::secrets::SecretsPage;
use app::protocol::shares::{SharesView, TeamView};
use app::protocol::system::SystemView;
use app::protocol::usage::{UsageQuery, UsageReport};
use app::protocol::workers::history::{PageQuery, WorkerAttempts, WorkerEvents};
use app::protocol::workers::{FleetLabels, WorkerView};
use app::ui::backend::{BackendFuture, DraftPreview, ServerPageBackend, SubmitDraft, UnseenChange};
use app::ui::page_problem::word_for_page;
use axum::extract::Query;
use axum::http::Uri;

use super::super::forms::{self, FormFields, merge_fields};
use super::super::submit_commands::submit_commands;
use super::{AUDIT, InProcessBackend, WORKERS};
use crate::http::edge::server_address::ServerAddress;
use crate::http::problem::ApiError;
use crate::http::system;
use crate::service::access::Requirement;
use crate::service::error::ServiceError;

const ACCOUNT: Requirement = Requirement::Permission(Permission::AccountManage);
const CONFIGS: Requirement = Requirement::Permission(Permission::ConfigView);
const EDIT_CONFIGS: Requirement = Requirement::Permission(Permission::ConfigEdit);
const FLEET: Requirement = Requirement::Permission(Permission::FleetView);
const TEAMS: Requirement = Requirement::Permission(Permission::AdminTeams);
const USERS: Requirement = Requirement::Permission(Permission::AdminUsers);
const SYSTEM: Requirement = Requirement::Permission(Permission::AdminSystem);
const SUBMIT_JOBS: Requirement = Requirement::Permission(Permission::JobSubmit);

impl ServerPageBackend for InProcessBackend {
    fn tokens(&self) -> BackendFuture<TokensPage> {
        self.query(ACCOUNT, None, |services, principal| async move {
            let user = principal.account_id()?;
            Ok(TokensPage { tokens: services.access.user_tokens(&user).await? })
        })
    }

    fn sessions(&self) -> BackendFuture<SessionsPage> {
        self.query(ACCOUNT, None, |services, principal| async move { services.access.sessions_page(&principal).await })
    }

    fn factors(&self) -> BackendFuture<FactorsView> {
        self.query(ACCOUNT, None, |services, principal| async move {
            services.access.user_factors(&principal.account_id()?).await
        })
    }

    fn totp_enrollment(&self) -> BackendFuture<TotpEnrollment> {
        self.query(
            ACCOUNT,
            None,
            |services, principal| async move { services.access.own_totp_enrollment(&principal).await },
        )
    }

    fn second_factor_methods(&self) -> BackendFuture<Option<AvailableFactors>> {
        let origin = PasskeyOrigin::from_url(&self.session.base_url).ok();
        self.query(Requirement::Login, None, |services, principal| async move {
            services.access.reauth_factors(&principal, origin).await
        })
    }

    fn passkey_enrollment(&self) -> BackendFuture<PasskeyEnrollment> {
        self.query(ACCOUNT, None, |services, principal| async move {
            services.access.own_passkey_enrolment(&principal).await
        })
    }

    fn notices(&self) -> BackendFuture<NoticesPage> {
        self.query(ACCOUNT, None, |services, principal| async move { services.access.notices_page(&principal).await })
    }

    fn editable_worker(&self, id: WorkerId) -> BackendFuture<WorkerView> {
        self.query(
            WORKERS,
            None,
            |services, principal| async move { services.workers.worker_for(&principal, &id).await },
        )
    }

    fn workers_by_ids(&self, ids: Vec<WorkerId>) -> BackendFuture<Vec<WorkerView>> {
        self.query(WORKERS, None, |services, _| async move { services.workers.workers_by_id(&ids).await })
    }

    fn jobs_by_ids(&self, ids: Vec<JobId>) -> BackendFuture<Vec<JobView>> {
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            services.jobs.jobs_by_id(&principal, &ids).await
        })
    }

    fn search_job_logs(&self, query: JobLogsQuery) -> BackendFuture<JobLogsPage> {
        self.query(Requirement::SeeJobs, None, move |services, principal| async move {
            services.logs.search_job_logs(&principal, &query).await
        })
    }

    fn configs(&self) -> BackendFuture<ConfigsPage> {
        self.query(CONFIGS, None, |services, _| async move { services.configs.configs().await })
    }

    fn config(&self, name: String, revision: Option<u32>) -> BackendFuture<ConfigDetail> {
        self.query(CONFIGS, None, move |services, _| async move {
            match revision {
                Some(revision) => services.configs.config_at(&name, revision).await,
                None => services.configs.config(&name).await,
            }
        })
    }

    fn editable_config(&self, name: Option<String>) -> BackendFuture<Option<ConfigDetail>> {
        self.query(EDIT_CONFIGS, None, move |services, _| async move {
            Ok(match name {
                Some(name) => Some(services.configs.config(&name).await?),
                None => None,
            })
        })
    }

    fn revisions(&self, name: String) -> BackendFuture<RevisionsPage> {
        self.query(CONFIGS, None, move |services, principal| async move {
            services.configs.revisions(&principal, &name).await
        })
    }

    fn labels_for_worker_form(&self) -> BackendFuture<FleetLabels> {
        self.query(WORKERS, None, |services, _| async move { services.workers.fleet_labels().await })
    }

    fn fleet_labels(&self) -> BackendFuture<FleetLabels> {
        self.query(SUBMIT_JOBS, None, |services, _| async move { services.workers.fleet_labels().await })
    }

    fn draft(&self, query: String, submitted_fields: Option<FormFields>) -> BackendFuture<SubmitDraft> {
        let locale = self.locale;
        let address = ServerAddress { base_url: self.session.base_url.clone(), fingerprint: self.session.fingerprint };
        self.query(SUBMIT_JOBS, None, move |services, principal| async move {
            let mut fields = submitted_fields.unwrap_or_else(|| merge_fields(query_pairs(&query)));
            if forms::field(&fields, "config").is_none()
                && let Some(first) = services.configs.configs().await?.configs.into_iter().next()
            {
                fields.insert("config".to_owned(), first.name);
            }
            let config_name = forms::field(&fields, "config").unwrap_or_default();
            let pinned_revision = forms::jobs::pinned_revision(&fields);
            let unseen_change = if pinned_revision.is_some() {
                None
            } else {
                services.configs.unreviewed_change(&principal.name, config_name).await?
            };
            let unseen_change =
                unseen_change.map(|(last_run, newest, changed_by)| UnseenChange { last_run, newest, changed_by });
            let draft_preview = async {
                let submit = forms::jobs::parse_submit(&principal, &fields)?;
                // The form shows an unseen change for review, so the preview uses the newest revision.
                let newest =
                    unseen_change.as_ref().map(|unseen_change| unseen_change.newest).or(submit.config_revision);
                let reviewed_submit = SubmitJob { config_revision: newest, ..submit.clone() };
                let preview = services.jobs.preview(&principal, &reviewed_submit).await?;
                Ok(DraftPreview { preview, commands: submit_commands(&submit, &address) })
            };
            let preview_result = draft_preview
                .await
                .map_err(|error: ServiceError| word_for_page(ApiError::from(error).to_problem(locale), locale));
            Ok(SubmitDraft {
                retried_revision: forms::jobs::revision_from_field(&fields, "ran"),
                pinned_revision,
                fields,
                preview: preview_result,
                unseen_change,
            })
        })
    }

    fn sample_votes(&self, ids: String) -> BackendFuture<SampleVotes> {
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            services.jobs.sample_votes(&principal, &ids).await
        })
    }

    fn job_columns(&self) -> BackendFuture<JobColumns> {
        self.query(
            Requirement::SeeJobs,
            None,
            |services, principal| async move { services.jobs.columns(&principal).await },
        )
    }

    fn shares(&self) -> BackendFuture<SharesView> {
        self.query(FLEET, None, |services, _| async move { services.shares.shares().await })
    }

    fn team(&self, name: String) -> BackendFuture<TeamView> {
        self.query(TEAMS, None, move |services, _| async move { services.shares.team(&name).await })
    }

    fn users(&self, query: UsersQuery) -> BackendFuture<UsersPage> {
        self.query(USERS, None, |services, _| async move { services.access.users_page(&query).await })
    }

    fn user(&self, id: UserId) -> BackendFuture<UserDetail> {
        self.query(USERS, None, |services, principal| async move { services.access.user_detail(&principal, &id).await })
    }

    fn worker_attempts(&self, id: WorkerId, query: PageQuery) -> BackendFuture<WorkerAttempts> {
        self.query(WORKERS, None, |services, _| async move { services.workers.worker_attempts(&id, &query).await })
    }

    fn worker_events(&self, id: WorkerId, query: PageQuery) -> BackendFuture<WorkerEvents> {
        self.query(WORKERS, None, |services, _| async move { services.workers.worker_events(&id, &query).await })
    }

    fn job_events(&self, id: JobId) -> BackendFuture<JobEvents> {
        self.query(Requirement::SeeJob, Some(id.clone()), |services, principal| async move {
            services.jobs.job_events(&principal, &id).await
        })
    }

    fn job_config(&self, id: JobId) -> BackendFuture<ConfigDetail> {
        let requirement = Requirement::SeeJobAnd(Permission::ConfigView);
        self.query(requirement, Some(id.clone()), |services, _| async move { services.jobs.job_config(&id).await })
    }

    fn usage(&self, query: UsageQuery) -> BackendFuture<UsageReport> {
        let zone = self.zone.clone();
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            let utc_offset = move |at| zone.as_ref().map_or(Millis(0), |zone| zone.utc_offset(at));
            services.usage.usage(&principal, &query, &utc_offset).await
        })
    }

    fn audit(&self, query: AuditQuery) -> BackendFuture<AuditPage> {
        self.query(AUDIT, None, |services, _| async move { services.audit.audit_page(&query).await })
    }

    fn verify_audit(&self) -> BackendFuture<AuditVerification> {
        self.query(AUDIT, None, |services, _| async move { services.audit.verify_audit().await })
    }

    fn system(&self) -> BackendFuture<SystemView> {
        let app = self.app.clone();
        self.query(SYSTEM, None, |_, _| async move { system::system_view(&app).await })
    }

    fn secrets(&self) -> BackendFuture<SecretsPage> {
        self.query(
            SUBMIT_JOBS,
            None,
            |services, principal| async move { services.secrets.secrets_page(&principal).await },
        )
    }
}

/// Returns the pairs of a query string, or none if it is malformed.
fn query_pairs(query: &str) -> Vec<(String, String)> {
    let address = Uri::builder().path_and_query(format!("/?{}", query.trim_start_matches('?'))).build();
    address.ok().and_then(|address| Query::try_from_uri(&address).ok()).map(|Query(pairs)| pairs).unwrap_or_default()
}
