//! `GET /api/overview`

use app::domain::access::Permission;
use app::protocol::overview::OverviewView;
use app::ui::localized_explanation::write_summary;
use axum::extract::State;
use axum::{Extension, Json};

use super::edge::language::ClientLanguage;
use super::problem::ApiError;
use super::routes::Routes;
use crate::http::operation::doc::OperationDoc;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};

pub fn routes(app: &AppState) -> Routes {
    Routes::new(app, "Workers").get("/overview", Requirement::Permission(Permission::AdminWorkers), SHOW, show)
}

const SHOW: OperationDoc = OperationDoc {
    description: "Counts only jobs that the caller may see.",
    ..OperationDoc::new("getOverview", "Shows the state of the fleet, and alerts.")
};

async fn show(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    ClientLanguage(language): ClientLanguage,
) -> Result<Json<OverviewView>, ApiError> {
    let mut overview = app.services.system.overview(&principal).await?;
    for summary in overview.attention.iter_mut().filter_map(|alert| alert.summary.as_mut()) {
        write_summary(summary, language);
    }
    Ok(Json(overview))
}
