//! Teams and their shares.

use app::domain::access::Permission;
use app::domain::shares::ShareSettings;
use app::protocol::shares::{CreateTeam, EditTeam, PutTeamMember, ShareRulesView};
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::echo_fields;
use super::{FormFields, FormParser, empty_routes, field, redirect_with_flash, redirect_with_problem};
use crate::http::edge::request::caller_from_principal;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::ServiceError;

const PAGE_URL: &str = "/shares";
/// The fields of a rejected form that are shown again.
const FIELDS: [&str; 9] = [
    "name",
    "description",
    "user",
    "weight",
    "guaranteed_gpus",
    "max_gpus",
    "max_gpu_hours",
    "max_running_jobs",
    "max_waiting_jobs",
];

pub fn routes(app: &AppState) -> Routes {
    let manage = Requirement::Permission(Permission::AdminTeams);
    empty_routes(app)
        .form("/ui/shares/rules", manage, set_rules)
        .form("/ui/teams", manage, create)
        .form("/ui/teams/{team}", manage, edit)
        .form("/ui/teams/{team}/delete", manage, delete)
        .form("/ui/teams/{team}/members", manage, add_member)
        .form("/ui/teams/{team}/members/{user}", manage, edit_member)
        .form("/ui/teams/{team}/members/{user}/remove", manage, remove_member)
}

fn team_url(team: &str) -> String {
    format!("{PAGE_URL}/{team}")
}

fn saved(app: &AppState, page: &str) -> Response {
    redirect_with_flash(app, page, Flash::Notice { code: FlashNotice::TeamSaved })
}

fn rejected(app: &AppState, page: &str, error: ServiceError, fields: &FormFields) -> Response {
    redirect_with_problem(app, page, FormName::Team, error, echo_fields(fields, &FIELDS))
}

/// Parses what a team or a member may use; an empty field is the default, which is no limit.
fn parse_settings(fields: &FormFields) -> Result<ShareSettings, ServiceError> {
    let mut parser = FormParser::new(fields);
    let (default, amounts) = (ShareSettings::default(), ShareSettings::AMOUNTS);
    let settings = ShareSettings {
        weight: parser.number("weight", ShareSettings::WEIGHTS).unwrap_or(default.weight),
        guaranteed_gpus: parser.number("guaranteed_gpus", amounts).unwrap_or(default.guaranteed_gpus),
        max_gpus: parser.number("max_gpus", amounts),
        max_gpu_hours: parser.number("max_gpu_hours", amounts),
        max_running_jobs: parser.number("max_running_jobs", amounts),
        max_waiting_jobs: parser.number("max_waiting_jobs", amounts),
    };
    parser.finish(Vec::new())?;
    Ok(settings)
}

/// `POST /ui/shares/rules`
pub async fn set_rules(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    // A text that is no number is as invalid as 0.
    let half_life_hours = field(&fields, "half_life_hours").and_then(|text| text.parse().ok()).unwrap_or(0);
    let rules = ShareRulesView { half_life_hours };
    match app.services.shares.set_rules(caller_from_principal(&principal), rules).await {
        Ok(_) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::ShareRulesSaved }),
        Err(error) => {
            let typed = echo_fields(&fields, &["half_life_hours"]);
            redirect_with_problem(&app, PAGE_URL, FormName::ShareRules, error, typed)
        }
    }
}

/// `POST /ui/teams`
pub async fn create(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let text = |name| field(&fields, name).unwrap_or_default().to_owned();
    let created = async {
        let settings = parse_settings(&fields)?;
        let create = CreateTeam { name: text("name"), description: text("description"), settings };
        app.services.shares.create_team(caller_from_principal(&principal), create).await
    };
    match created.await {
        Ok(team) => saved(&app, &team_url(&team.name)),
        Err(error) => rejected(&app, "/shares/new", error, &fields),
    }
}

/// `POST /ui/teams/{team}`
pub async fn edit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(team): Path<String>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = team_url(&team);
    let edited = async {
        let description = field(&fields, "description").unwrap_or_default().to_owned();
        let edit = EditTeam { description, settings: parse_settings(&fields)? };
        app.services.shares.edit_team(caller_from_principal(&principal), team, edit).await
    };
    match edited.await {
        Ok(_) => saved(&app, &page),
        Err(error) => rejected(&app, &page, error, &fields),
    }
}

/// `POST /ui/teams/{team}/delete`
pub async fn delete(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(team): Path<String>,
) -> Response {
    let page = team_url(&team);
    match app.services.shares.delete_team(caller_from_principal(&principal), team).await {
        Ok(()) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::TeamDeleted }),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    }
}

/// `POST /ui/teams/{team}/members`
pub async fn add_member(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(team): Path<String>,
    Form(fields): Form<FormFields>,
) -> Response {
    let user = field(&fields, "user").unwrap_or_default().to_owned();
    put_member(&app, &principal, team, user, &fields).await
}

/// `POST /ui/teams/{team}/members/{user}`
pub async fn edit_member(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path((team, user)): Path<(String, String)>,
    Form(fields): Form<FormFields>,
) -> Response {
    put_member(&app, &principal, team, user, &fields).await
}

async fn put_member(
    app: &AppState,
    principal: &Principal,
    team: String,
    user: String,
    fields: &FormFields,
) -> Response {
    let page = team_url(&team);
    let form_page = if fields.contains_key("user") { page.clone() } else { format!("{page}/{user}") };
    let stored = async {
        let put = PutTeamMember { settings: parse_settings(fields)? };
        app.services.shares.put_member(caller_from_principal(principal), team, user, put).await
    };
    match stored.await {
        Ok(_) => saved(app, &page),
        Err(error) => rejected(app, &form_page, error, fields),
    }
}

/// `POST /ui/teams/{team}/members/{user}/remove`
pub async fn remove_member(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path((team, user)): Path<(String, String)>,
) -> Response {
    let page = team_url(&team);
    match app.services.shares.remove_member(caller_from_principal(&principal), team, user).await {
        Ok(_) => saved(&app, &page),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    }
}
