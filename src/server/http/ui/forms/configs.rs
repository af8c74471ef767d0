//! A new configuration, and the next revision of one.

use std::collections::BTreeMap;

use app::protocol::configs::Bundle;
use app::ui::flash::{Flash, FormName, Notice};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::{Fields, answer, field, refused};
use crate::http::request::caller;
use crate::service::access::Person;
use crate::service::configs::Seen;
use crate::service::refusal::{Invalid, Refusal};
use crate::state::App;
use crate::text::percent_escaped;

/// `POST /ui/configs`
pub async fn create(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Form(fields): Form<Fields>,
) -> Response {
    let name = field(&fields, "name").unwrap_or_default().to_owned();
    store(&app, &person, name, Seen::Nothing, "/configs/new", fields).await
}

/// `POST /ui/configs/{name}`
pub async fn edit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    Form(fields): Form<Fields>,
) -> Response {
    let seen = Seen::Revisions(field(&fields, "revision").into_iter().map(str::to_owned).collect());
    let page = format!("/configs/{}/edit", percent_escaped(&name));
    store(&app, &person, name, seen, &page, fields).await
}

async fn store(app: &App, person: &Person, name: String, seen: Seen, page: &str, fields: Fields) -> Response {
    let stored = async {
        let bundle = bundle(&fields)?;
        app.core.put_config(caller(person), name, bundle, seen).await
    };
    match stored.await {
        Ok(config) => {
            let page = format!("/configs/{}", percent_escaped(&config.name));
            answer(app, &page, Flash::Notice { code: Notice::ConfigStored })
        }
        Err(refusal) => refused(app, page, FormName::Config, refusal, fields),
    }
}

/// The files: the text of `text.N` by the name in `file.N`, unless `gone.N` is ticked. What has neither is no file.
fn bundle(fields: &Fields) -> Result<Bundle, Refusal> {
    let mut files = BTreeMap::new();
    for (key, name) in fields {
        let Some(place) = key.strip_prefix("file.") else { continue };
        // A browser sends the ends of lines as the network has them.
        let text = fields.get(&format!("text.{place}")).map(|text| text.replace("\r\n", "\n")).unwrap_or_default();
        let (name, is_gone) = (name.trim(), fields.contains_key(&format!("gone.{place}")));
        if is_gone || (name.is_empty() && text.trim().is_empty()) {
            continue;
        }
        if files.insert(name.to_owned(), text).is_some() {
            return Err(Invalid::Path(name.to_owned()).into());
        }
    }
    Ok(Bundle { files })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn files_are_taken_by_their_names() {
        let typed = fields(&[
            ("name", "x"),
            ("file.0", "config.json"),
            ("text.0", "{\r\n}\r\n"),
            ("file.1", " prompts/a.txt "),
            ("text.1", ""),
            ("file.2", "old.toml"),
            ("text.2", "a = 1"),
            ("gone.2", "true"),
            ("file.3", ""),
            ("text.3", "\r\n"),
        ]);
        let files = bundle(&typed).expect("files").files;
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(files, [("config.json", "{\n}\n"), ("prompts/a.txt", "")]);
    }

    #[test]
    fn two_of_one_name_are_refused() {
        let typed = fields(&[("file.0", "a"), ("text.0", "1"), ("file.1", "a"), ("text.1", "2")]);
        assert_eq!(bundle(&typed), Err(Invalid::Path("a".to_owned()).into()));
    }
}
