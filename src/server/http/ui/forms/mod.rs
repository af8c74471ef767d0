//! HTML forms: each handler calls the same use case as the API, and responds with a redirect and a flash message.

pub mod access;
pub mod account;
pub mod bulk;
pub mod configs;
pub mod factors;
pub mod jobs;
pub mod reauth;
pub mod sample_votes;
pub mod saved_views;
pub mod script_response;
pub mod second_step;
pub mod secrets;
pub mod shares;
pub mod users;
pub mod workers;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::str::FromStr;

use app::domain::allowed_values::AllowedValues;
use app::domain::labels::Labels;
use app::ui::flash::{Flash, FormName};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::FLASH_COOKIE;
use crate::http::problem::ApiError;
use crate::http::request_context::{current_locale, current_user};
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::error::{InvalidField, ServiceError, require_valid};
use crate::text::local_path;

/// The fields of a form.
pub type FormFields = BTreeMap<String, String>;

/// Merges repeated fields: their values become lines.
pub fn merge_fields(pairs: Vec<(String, String)>) -> FormFields {
    pairs.into_iter().fold(FormFields::new(), |mut fields, (name, value)| {
        match fields.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(value),
            Entry::Occupied(mut lines) => lines.get_mut().extend(["\n", value.as_str()]),
        }
        fields
    })
}

/// Redirects to a page that shows the message once.
pub fn redirect_with_flash(app: &AppState, to: &str, flash: Flash) -> Response {
    let id = app.flashes.insert(flash, current_user(), app.services.context.now(), &*app.services.context.random);
    let cookie = format!("{FLASH_COOKIE}={id}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    ([(header::SET_COOKIE, cookie)], Redirect::to(to)).into_response()
}

/// Redirects to the form, which shows the error and the submitted values, or asks for the password if the
/// error is that it must be confirmed.
pub fn redirect_with_problem(
    app: &AppState,
    to: &str,
    form: FormName,
    error: ServiceError,
    fields: FormFields,
) -> Response {
    if error == ServiceError::RecentAuthRequired {
        return reauth::reauth_required();
    }
    let problem = ApiError::from(error).to_problem(current_locale());
    redirect_with_flash(app, to, Flash::Problem { form, problem, fields })
}

/// Creates an empty set of routes of forms, which redirect a caller without the permission.
pub fn empty_routes(app: &AppState) -> Routes {
    Routes::new(app, "Login").deny_with(redirect_denied)
}

/// Redirects to the previous page with the error of a missing permission, or asks for the password first.
fn redirect_denied(app: &AppState, headers: &HeaderMap, error: ServiceError) -> Response {
    let referer = headers.get(header::REFERER).and_then(|referer| referer.to_str().ok()?.parse::<Uri>().ok());
    let path = referer.as_ref().and_then(Uri::path_and_query).map_or("/", PathAndQuery::as_str);
    let path = local_path(path);
    redirect_with_problem(app, path, FormName::Action, error, FormFields::new())
}

/// Returns a field without surrounding whitespace, or `None` if it is empty.
pub fn field<'f>(fields: &'f FormFields, name: &str) -> Option<&'f str> {
    fields.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Separates labels that are typed into one field.
pub const LINES_OR_COMMAS: &[char] = &['\n', ','];
/// Separates labels with one field each, because a value may contain commas.
pub const LINES: &[char] = &['\n'];

/// Parses the fields of a form and collects all errors, so that they are shown together.
pub struct FormParser<'f> {
    fields: &'f FormFields,
    errors: Vec<InvalidField>,
}

impl<'f> FormParser<'f> {
    pub const fn new(fields: &'f FormFields) -> Self {
        Self { fields, errors: Vec::new() }
    }

    /// Parses a number, if the field is not empty.
    pub fn number<T: FromStr>(&mut self, name: &'static str, allowed: AllowedValues) -> Option<T> {
        self.value(name, |text| text.parse().map_err(|_| InvalidField::out_of_range(name, allowed)))
    }

    /// Parses a field with `parse`, if it is not empty.
    pub fn value<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, InvalidField>) -> Option<T> {
        match parse(field(self.fields, name)?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.errors.push(error);
                None
            }
        }
    }

    /// Parses the field `labels`; errors refer to the API's field `name`.
    pub fn labels(&mut self, name: &'static str, separators: &[char]) -> Labels {
        let (labels, result) =
            Labels::parse_entries(field(self.fields, "labels").unwrap_or_default().split(separators));
        self.errors.extend(result.err().map(|error| InvalidField::new(name, error)));
        labels
    }

    pub fn push_error(&mut self, error: InvalidField) {
        self.errors.push(error);
    }

    /// Rejects the form if there is any error, found in parsing or listed in `other_errors`.
    pub fn finish(mut self, other_errors: Vec<InvalidField>) -> Result<(), ServiceError> {
        for error in other_errors {
            if !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
        require_valid(self.errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn allowed(max: u64) -> AllowedValues {
        AllowedValues::Number { min: 0, max }
    }

    fn fields(pairs: &[(&str, &str)]) -> FormFields {
        merge_fields(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn labels_are_parsed_as_entered() {
        let form = fields(&[("labels", "team=nlp\r\n gpu_type = a100* ,zone=\n")]);
        let labels = FormParser::new(&form).labels("labels", LINES_OR_COMMAS);
        let pairs: Vec<_> = labels.0.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("gpu_type", "a100*"), ("team", "nlp"), ("zone", "")]);
        assert_eq!(FormParser::new(&FormFields::new()).labels("labels", LINES_OR_COMMAS), Labels::default());
        let row = fields(&[("labels", "note=a, b"), ("labels", "zone=c")]);
        let row = FormParser::new(&row).labels("labels", LINES);
        assert_eq!(row.0.get("note").map(String::as_str), Some("a, b"));
    }

    #[test]
    fn all_errors_are_reported_once() {
        let form = fields(&[("labels", "nonsense"), ("gpus", "two"), ("priority", "7")]);
        let mut parser = FormParser::new(&form);
        assert_eq!(parser.labels("labels", LINES), Labels::default());
        assert_eq!(
            (parser.number::<u8>("gpus", allowed(1)), parser.number("priority", allowed(2))),
            (None, Some(7_u8))
        );
        assert_eq!(parser.number::<u8>("other", allowed(3)), None, "an empty field is valid");
        let more = vec![InvalidField::out_of_range("gpus", allowed(1)), InvalidField::out_of_range("name", allowed(4))];
        let Err(ServiceError::InvalidFields(errors)) = parser.finish(more) else { panic!("it is rejected") };
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_ref()).collect();
        assert_eq!(fields, ["labels", "gpus", "name"]);
        assert_eq!(FormParser::new(&form).finish(Vec::new()), Ok(()));
    }
}
