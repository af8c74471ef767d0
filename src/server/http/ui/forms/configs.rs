//! Creates configurations and their revisions.

use std::collections::BTreeMap;

use app::protocol::configs::{ConfigBundle, file_field};
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};

use super::{FormFields, FormParser, field, redirect_with_flash, redirect_with_problem};
use crate::http::edge::request::caller_from_principal;
use crate::http::state::AppState;
use crate::service::access::Principal;
use crate::service::configs::ConfigPrecondition;
use crate::service::error::{InvalidField, InvalidInput};
use crate::text::percent_escaped;

/// `POST /ui/configs`
pub async fn create(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let name = field(&fields, "name").unwrap_or_default().to_owned();
    store(&app, &principal, name, ConfigPrecondition::Absent, "/configs/new", fields).await
}

/// `POST /ui/configs/{name}`
pub async fn edit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = format!("/configs/{}/edit", percent_escaped(&name));
    store(&app, &principal, name, shown_revision(&fields), &page, fields).await
}

/// `POST /ui/configs/{name}/delete`: the page of the configuration then says that it is deleted.
pub async fn delete(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = format!("/configs/{}", percent_escaped(&name));
    let precondition = shown_revision(&fields);
    match app.services.configs.delete_config(caller_from_principal(&principal), name, precondition).await {
        Ok(()) => Redirect::to(&page).into_response(),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, fields),
    }
}

/// The change applies to the revision that the page has shown.
fn shown_revision(fields: &FormFields) -> ConfigPrecondition {
    ConfigPrecondition::Revisions(field(fields, "revision").into_iter().map(str::to_owned).collect())
}

async fn store(
    app: &AppState,
    principal: &Principal,
    name: String,
    precondition: ConfigPrecondition,
    page: &str,
    fields: FormFields,
) -> Response {
    let stored = async {
        let mut parser = FormParser::new(&fields);
        let bundle = read_bundle(&mut parser, &fields);
        parser.finish(app.services.configs.invalid_config_fields(&name, &bundle))?;
        app.services.configs.put_config(caller_from_principal(principal), name, bundle, precondition).await
    };
    match stored.await {
        Ok(config) => {
            let page = format!("/configs/{}", percent_escaped(&config.name));
            redirect_with_flash(app, &page, Flash::Notice { code: FlashNotice::ConfigStored })
        }
        Err(error) => redirect_with_problem(app, page, FormName::Config, error, fields),
    }
}

/// Reads the files: each has its name in `file.N` and its text in `text.N`, unless `removed.N` is
/// checked. Empty entries are skipped.
fn read_bundle(parser: &mut FormParser<'_>, fields: &FormFields) -> ConfigBundle {
    let mut files = BTreeMap::new();
    for (key, name) in fields {
        let Some(index) = key.strip_prefix("file.") else { continue };
        // Browsers submit line ends as CRLF.
        let text = fields.get(&format!("text.{index}")).map(|text| text.replace("\r\n", "\n")).unwrap_or_default();
        let (name, is_removed) = (name.trim(), fields.contains_key(&format!("removed.{index}")));
        if is_removed || (name.is_empty() && text.trim().is_empty()) {
            continue;
        }
        if files.insert(name.to_owned(), text).is_some() {
            parser.push_error(InvalidField::new(file_field(name), InvalidInput::Path(name.to_owned())));
        }
    }
    ConfigBundle { files }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::error::ServiceError;

    fn fields(pairs: &[(&str, &str)]) -> FormFields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn files_are_taken_by_their_names() {
        let form = fields(&[
            ("name", "x"),
            ("file.0", "config.json"),
            ("text.0", "{\r\n}\r\n"),
            ("file.1", " prompts/a.txt "),
            ("text.1", ""),
            ("file.2", "old.toml"),
            ("text.2", "a = 1"),
            ("removed.2", "true"),
            ("file.3", ""),
            ("text.3", "\r\n"),
        ]);
        let mut parser = FormParser::new(&form);
        let files = read_bundle(&mut parser, &form).files;
        assert_eq!(parser.finish(Vec::new()), Ok(()));
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(files, [("config.json", "{\n}\n"), ("prompts/a.txt", "")]);
    }

    #[test]
    fn two_files_with_one_name_are_an_error() {
        let form = fields(&[("file.0", "a"), ("text.0", "1"), ("file.1", "a"), ("text.1", "2")]);
        let mut parser = FormParser::new(&form);
        read_bundle(&mut parser, &form);
        let duplicate = InvalidField::new("files/a", InvalidInput::Path("a".to_owned()));
        assert_eq!(parser.finish(Vec::new()), Err(ServiceError::InvalidFields(vec![duplicate])));
    }
}
