//! The question of a list, answered: what was chosen is done, and the list says what became of it.

use std::collections::HashMap;

use app::domain::ids::{JobId, WorkerId};
use app::protocol::status::BulkAction;
use app::ui::bulk::{Listed, Refused, Tally, job_name};
use app::ui::flash::FormName;
use app::ui::prefs::Locale;
use app::ui::told::told;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Form};
use futures_util::future::BoxFuture;

use super::workers::terms;
use super::{Fields, answer, field, gathered, refused};
use crate::http::problem::ApiError;
use crate::http::request::caller;
use crate::http::ui::prefs;
use crate::service::Core;
use crate::service::access::Person;
use crate::service::bulk::{Asked, Became, Outcome};
use crate::service::refusal::Refusal;
use crate::state::App;
use crate::text::local_path;

type Pairs = Vec<(String, String)>;
type Answered = BoxFuture<'static, Response>;

/// The handler of an action, with `id` as often as there are any, and the list to go `back` to.
pub fn of(
    action: BulkAction,
) -> impl Fn(State<App>, Extension<Person>, HeaderMap, Form<Pairs>) -> Answered + Clone + Send + Sync + 'static {
    move |State(app), Extension(person), headers, Form(pairs)| {
        Box::pin(async move {
            let fields = gathered(pairs);
            let ids = field(&fields, "id").into_iter().flat_map(str::lines).map(str::to_owned).collect();
            let asked = Asked { drain: terms(&fields), ..Asked::of(action, ids) };
            let back = field(&fields, "back").unwrap_or(Listed::of(action).path());
            let back = local_path(back);
            let locale = prefs(&headers, app.core.now()).locale;
            match app.core.in_bulk(caller(&person), &person, asked).await {
                Err(refusal) => refused(&app, back, FormName::Action, refusal, Fields::new()),
                Ok(outcomes) => {
                    let tally = tally(&app.core, &person, action, outcomes, locale).await;
                    answer(&app, back, tally.flash(action, back, locale))
                }
            }
        })
    }
}

/// Counts, and finds names for those that were refused, as far as the person may know them.
async fn tally(core: &Core, person: &Person, action: BulkAction, outcomes: Vec<Outcome>, locale: Locale) -> Tally {
    let mut tally = Tally::default();
    let mut refused = Vec::new();
    for (id, became) in outcomes {
        match became {
            Ok(Became::Done | Became::Again(_)) => tally.done.push(id),
            Ok(Became::Unchanged) => tally.unchanged += 1,
            Err(refusal) => refused.push((id, told(ApiError::from(refusal).problem(), locale).detail)),
        }
    }
    let names = names(core, person, action, &refused).await.unwrap_or_default();
    let one = |(id, why): (String, String)| Refused { name: names.get(&id).cloned().unwrap_or(id), why };
    tally.refused = refused.into_iter().map(one).collect();
    tally
}

async fn names(
    core: &Core,
    person: &Person,
    action: BulkAction,
    of: &[(String, String)],
) -> Result<HashMap<String, String>, Refusal> {
    let ids = of.iter().map(|(id, _)| id);
    Ok(match Listed::of(action) {
        Listed::Workers => {
            let ids: Vec<_> = ids.filter_map(|id| WorkerId::parse(id).ok()).collect();
            let workers = core.workers_named(&ids).await?;
            workers.into_iter().map(|worker| (worker.id.to_string(), worker.name)).collect()
        }
        Listed::Jobs => {
            let ids: Vec<_> = ids.filter_map(|id| JobId::parse(id).ok()).collect();
            let jobs = core.jobs_named(person, &ids).await?;
            jobs.iter().map(|job| (job.job_id.to_string(), job_name(job))).collect()
        }
    })
}
