//! Bulk actions on the selected items of a list.

use std::collections::HashMap;

use app::domain::ids::{JobId, WorkerId};
use app::protocol::status::{BulkAction, BulkTarget};
use app::ui::bulk::{BulkRejection, BulkSummary, form_url, job_name, list_url};
use app::ui::flash::FormName;
use app::ui::page_problem::word_for_page;
use app::ui::prefs::Locale;
use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Form};
use futures_util::future::BoxFuture;

use super::workers::parse_drain_terms;
use super::{FormFields, empty_routes, field, merge_fields, redirect_with_flash, redirect_with_problem};
use crate::http::edge::request::caller_from_principal;
use crate::http::problem::ApiError;
use crate::http::request_context::current_locale;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::Services;
use crate::service::access::Principal;
use crate::service::bulk::{BulkItemEffect, BulkItemOutcome, BulkRequest, bulk_requirement};
use crate::service::error::ServiceError;
use crate::text::local_path;

type Pairs = Vec<(String, String)>;
type HandlerFuture = BoxFuture<'static, Response>;

/// Returns the routes of all actions.
pub fn routes(app: &AppState) -> Routes {
    BulkAction::ALL.into_iter().fold(empty_routes(app), |routes, action| {
        routes.form(&form_url(action), bulk_requirement(action), handler(action))
    })
}

/// Returns the handler of an action. The form repeats `id` for each item; `back` is the list to return to.
fn handler(
    action: BulkAction,
) -> impl Fn(State<AppState>, Extension<Principal>, Form<Pairs>) -> HandlerFuture + Clone + Send + Sync + 'static {
    move |State(app), Extension(principal), Form(pairs)| {
        Box::pin(async move {
            let fields = merge_fields(pairs);
            let ids = field(&fields, "id").into_iter().flat_map(str::lines).map(str::to_owned).collect();
            let request = BulkRequest { drain: parse_drain_terms(&fields), ..BulkRequest::new(action, ids) };
            let list_path = field(&fields, "back").unwrap_or(list_url(action.target()));
            let list_path = local_path(list_path);
            let locale = current_locale();
            match app.services.bulk.run_bulk(caller_from_principal(&principal), &principal, request).await {
                Err(error) => redirect_with_problem(&app, list_path, FormName::Action, error, FormFields::new()),
                Ok(outcomes) => {
                    let summary = summarize(&app.services, &principal, action, outcomes, locale).await;
                    redirect_with_flash(&app, list_path, summary.to_flash(action, list_path, locale))
                }
            }
        })
    }
}

/// Summarizes the results, with the names of rejected items that the user may view.
async fn summarize(
    services: &Services,
    principal: &Principal,
    action: BulkAction,
    outcomes: Vec<BulkItemOutcome>,
    locale: Locale,
) -> BulkSummary {
    let mut summary = BulkSummary::default();
    let mut rejected = Vec::new();
    for (id, effect) in outcomes {
        match effect {
            Ok(BulkItemEffect::Done | BulkItemEffect::Retried(_)) => summary.done.push(id),
            Ok(BulkItemEffect::Unchanged) => summary.unchanged += 1,
            Err(error) => rejected.push((id, word_for_page(ApiError::from(error).to_problem(locale), locale).detail)),
        }
    }
    let names = target_names(services, principal, action, &rejected).await.unwrap_or_default();
    let rejection =
        |(id, why): (String, String)| BulkRejection { name: names.get(&id).cloned().unwrap_or(id), reason: why };
    summary.rejected = rejected.into_iter().map(rejection).collect();
    summary
}

async fn target_names(
    services: &Services,
    principal: &Principal,
    action: BulkAction,
    rejected: &[(String, String)],
) -> Result<HashMap<String, String>, ServiceError> {
    let ids = rejected.iter().map(|(id, _)| id);
    Ok(match action.target() {
        BulkTarget::Workers => {
            let ids: Vec<_> = ids.filter_map(|id| WorkerId::parse(id).ok()).collect();
            let workers = services.workers.workers_by_id(&ids).await?;
            workers.into_iter().map(|worker| (worker.id.to_string(), worker.name)).collect()
        }
        BulkTarget::Jobs => {
            let ids: Vec<_> = ids.filter_map(|id| JobId::parse(id).ok()).collect();
            let jobs = services.jobs.jobs_by_id(principal, &ids).await?;
            jobs.iter().map(|job| (job.job_id.to_string(), job_name(job))).collect()
        }
    })
}
