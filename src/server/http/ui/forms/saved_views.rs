//! Saves and deletes views of the list of jobs.

use app::protocol::jobs::saved_views::SaveView;
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Form};

use super::{FormFields, empty_routes, field, redirect_with_flash, redirect_with_problem};
use crate::http::edge::request::caller_from_principal;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};

pub fn routes(app: &AppState) -> Routes {
    empty_routes(app).form("/ui/jobs/views", Requirement::SeeJobs, save).form(
        "/ui/jobs/views/delete",
        Requirement::SeeJobs,
        delete,
    )
}

/// `POST /ui/jobs/views`: redirects to the list.
async fn save(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let query = fields.get("query").cloned().unwrap_or_default();
    let name = field(&fields, "name").unwrap_or_default();
    let save = SaveView { query: query.clone(), shared: fields.contains_key("shared") };
    match app.services.jobs.save_view(caller_from_principal(&principal), &principal, name, &save).await {
        Ok(view) => {
            let notice = Flash::Notice { code: FlashNotice::ViewSaved };
            redirect_with_flash(&app, &format!("/jobs?{}", view.query), notice)
        }
        Err(error) => redirect_with_problem(&app, &page_url(&query), FormName::View, error, fields),
    }
}

/// `POST /ui/jobs/views/delete`
async fn delete(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = page_url(fields.get("query").map(String::as_str).unwrap_or_default());
    let (owner, name) = (field(&fields, "owner"), field(&fields, "name").unwrap_or_default());
    match app.services.jobs.delete_view(caller_from_principal(&principal), &principal, owner, name).await {
        Ok(()) => redirect_with_flash(&app, &page, Flash::Notice { code: FlashNotice::ViewDeleted }),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    }
}

/// The page on which the view of this query is edited.
fn page_url(query: &str) -> String {
    format!("/jobs/view?{query}")
}
