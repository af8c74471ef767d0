//! Plain forms: each calls the use case that the API calls, and answers with a redirect and a word for the next page.

pub mod access;
pub mod account;
pub mod bulk;
pub mod configs;
pub mod factors;
pub mod jobs;
pub mod people;
pub mod proof;
pub mod second_step;
pub mod secrets;
pub mod workers;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use app::domain::labels::Labels;
use app::ui::flash::{Flash, FormName};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::FLASH_COOKIE;
use crate::http::problem::ApiError;
use crate::http::request::current_person;
use crate::service::refusal::Refusal;
use crate::state::App;
use crate::text::local_path;

/// What a form sends.
pub type Fields = BTreeMap<String, String>;

/// What a form sends of which some fields have several values: they are lines then.
pub fn gathered(pairs: Vec<(String, String)>) -> Fields {
    pairs.into_iter().fold(Fields::new(), |mut fields, (name, value)| {
        match fields.entry(name) {
            Entry::Vacant(place) => _ = place.insert(value),
            Entry::Occupied(mut lines) => lines.get_mut().extend(["\n", value.as_str()]),
        }
        fields
    })
}

/// To the next page, which says this once.
pub fn answer(app: &App, to: &str, flash: Flash) -> Response {
    let id = app.flashes.put(flash, current_person(), app.core.now(), &*app.core.random);
    let cookie = format!("{FLASH_COOKIE}={id}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    ([(header::SET_COOKIE, cookie)], Redirect::to(to)).into_response()
}

/// Back to the form, which says what was wrong and keeps what was typed; or the page that asks for the password first.
pub fn refused(app: &App, to: &str, form: FormName, refusal: Refusal, fields: Fields) -> Response {
    if refusal == Refusal::ProofNeeded {
        return proof::wanted();
    }
    answer(app, to, Flash::Problem { form, problem: ApiError::from(refusal).problem(), fields })
}

/// Back to where it was asked, which says that the reader may not; or the page that asks for the password first.
pub fn denied(app: &App, headers: &HeaderMap, refusal: Refusal) -> Response {
    let from = headers.get(header::REFERER).and_then(|from| from.to_str().ok()?.parse::<Uri>().ok());
    let back = from.as_ref().and_then(Uri::path_and_query).map_or("/", PathAndQuery::as_str);
    let back = local_path(back);
    refused(app, back, FormName::Action, refusal, Fields::new())
}

/// A field without surrounding blanks; none if it is empty.
pub fn field<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    fields.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Labels as people type them: `key=value`, a line or a comma each.
pub fn labels(text: Option<&str>) -> Labels {
    parted(text, &['\n', ','])
}

/// Labels of rows: a comma is a part of one, as it may be in those that came by the API.
pub fn row_labels(text: Option<&str>) -> Labels {
    parted(text, &['\n'])
}

fn parted(text: Option<&str>, by: &[char]) -> Labels {
    let entries = text.unwrap_or_default().split(by).map(str::trim).filter(|entry| !entry.is_empty());
    let pair = |entry: &str| {
        let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
        (key.trim().to_owned(), value.trim().to_owned())
    };
    Labels(entries.map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_as_typed() {
        let typed = labels(Some("team=nlp\r\n gpu_type = a100* ,zone=\n\nflag"));
        let pairs: Vec<_> = typed.0.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("flag", ""), ("gpu_type", "a100*"), ("team", "nlp"), ("zone", "")]);
        assert_eq!(labels(None), Labels::default());
        let row = row_labels(Some("note=a, b\nzone=c"));
        assert_eq!(row.0.get("note").map(String::as_str), Some("a, b"));
    }
}
