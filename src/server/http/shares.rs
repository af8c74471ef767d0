//! `/api/teams` and `/api/shares`: who gets how much of the fleet.

use app::domain::access::Permission;
use app::protocol::agents::ReportResponse;
use app::protocol::shares::{CreateTeam, EditTeam, PutTeamMember, ShareRulesView, SharesView, TeamView, TeamsPage};
use axum::extract::State;
use axum::{Extension, Json};

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::extractors::Path;
use crate::http::edge::json::{CreatedJson, Json as Body};
use crate::http::edge::limits;
use crate::http::edge::request::caller_from_principal;
use crate::http::operation::doc::OperationDoc;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};

pub fn routes(app: &AppState) -> Routes {
    let (see, manage) =
        (Requirement::Permission(Permission::FleetView), Requirement::Permission(Permission::AdminTeams));
    Routes::new(app, "Shares")
        .get("/teams", see, LIST, list)
        .post("/teams", manage, CREATE, create)
        .get("/teams/{team}", see, SHOW, show)
        .put("/teams/{team}", manage, EDIT, edit)
        .delete("/teams/{team}", manage, REMOVE, remove)
        .put("/teams/{team}/members/{user}", manage, PUT_MEMBER, put_member)
        .delete("/teams/{team}/members/{user}", manage, REMOVE_MEMBER, remove_member)
        .get("/shares", see, SHARES, shares)
        .put("/shares/rules", manage, SET_RULES, set_rules)
        .layer(|router| limits::limit_body(router, limits::API))
}

const LIST: OperationDoc = OperationDoc::new("listTeams", "Lists the teams with their members.");

async fn list(State(app): State<AppState>) -> Result<Json<TeamsPage>, ApiError> {
    Ok(Json(app.services.shares.teams_page().await?))
}

const CREATE: OperationDoc = OperationDoc {
    description: "The unique name makes the request safe to repeat.",
    problems: &["out_of_range", "name_taken", "too_large"],
    ..OperationDoc::new("createTeam", "Creates a team.")
};

async fn create(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(create): Body<CreateTeam>,
) -> Result<CreatedJson<TeamView>, ApiError> {
    Ok(CreatedJson(app.services.shares.create_team(caller_from_principal(&principal), create).await?))
}

const SHOW: OperationDoc =
    OperationDoc { problems: &["team_not_found"], ..OperationDoc::new("getTeam", "Shows a team with its members.") };

async fn show(State(app): State<AppState>, Path(team): Path<String>) -> Result<Json<TeamView>, ApiError> {
    Ok(Json(app.services.shares.team(&team).await?))
}

const EDIT: OperationDoc = OperationDoc {
    description: "Running jobs continue, also if a limit is lower than what they use.",
    problems: &["team_not_found", "out_of_range"],
    ..OperationDoc::new("editTeam", "Replaces the description of a team and what it may use.")
};

async fn edit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(team): Path<String>,
    Body(edit): Body<EditTeam>,
) -> Result<Json<TeamView>, ApiError> {
    Ok(Json(app.services.shares.edit_team(caller_from_principal(&principal), team, edit).await?))
}

const REMOVE: OperationDoc = OperationDoc {
    description: "Its jobs then count for the team `default`, which cannot be deleted.",
    problems: &["team_not_found", "default_team"],
    ..OperationDoc::new("deleteTeam", "Deletes a team.")
};

async fn remove(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(team): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.shares.delete_team(caller_from_principal(&principal), team).await?;
    Ok(Json(ReportResponse { success: true }))
}

const PUT_MEMBER: OperationDoc = OperationDoc {
    description: "Without a team in a submit, a user's jobs count for the team that the user joined first.",
    problems: &["team_not_found", "user_not_found", "out_of_range", "too_large"],
    ..OperationDoc::new("putTeamMember", "Adds a user to a team, or replaces what the member may use.")
};

async fn put_member(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path((team, user)): Path<(String, String)>,
    Body(put): Body<PutTeamMember>,
) -> Result<Json<TeamView>, ApiError> {
    Ok(Json(app.services.shares.put_member(caller_from_principal(&principal), team, user, put).await?))
}

const REMOVE_MEMBER: OperationDoc = OperationDoc {
    description: "Jobs that the user has submitted for the team still count for it.",
    problems: &["team_not_found", "user_not_found"],
    ..OperationDoc::new("removeTeamMember", "Removes a user from a team.")
};

async fn remove_member(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path((team, user)): Path<(String, String)>,
) -> Result<Json<TeamView>, ApiError> {
    Ok(Json(app.services.shares.remove_member(caller_from_principal(&principal), team, user).await?))
}

const SHARES: OperationDoc = OperationDoc {
    description: "The team at the top of the list, and in it the member at the top, gets the next GPU that its jobs \
             can use.",
    ..OperationDoc::new("getShares", "Shows what teams and their members use, and what they are owed.")
};

async fn shares(State(app): State<AppState>) -> Result<Json<SharesView>, ApiError> {
    Ok(Json(app.services.shares.shares().await?))
}

const SET_RULES: OperationDoc = OperationDoc {
    problems: &["out_of_range"],
    ..OperationDoc::new("setShareRules", "Sets how fast usage is forgotten.")
};

async fn set_rules(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(rules): Body<ShareRulesView>,
) -> Result<Json<ShareRulesView>, ApiError> {
    Ok(Json(app.services.shares.set_rules(caller_from_principal(&principal), rules).await?))
}
