//! Problems in the user's language, built from their code and parameters, because the API's sentences are English.
//! Problems without a sentence here remain unchanged.

use super::locales::Language;
use super::prefs::Locale;
use super::submit_form;
use crate::domain::access::{Permission, Role};
use crate::domain::password::MIN_CHARS;
use crate::domain::time::Millis;
use crate::protocol::problem::{FieldError, Problem};

/// Translates a problem into the user's language.
pub fn localize(mut problem: Problem, locale: Locale) -> Problem {
    problem.errors =
        std::mem::take(&mut problem.errors).into_iter().map(|error| localize_field_error(error, locale)).collect();
    let sentence = localized_sentence(&problem, locale).unwrap_or_else(|| problem.detail.clone());
    problem.detail = use_field_label(sentence, problem.params.get("field").map(String::as_str), Language::of(locale));
    problem
}

/// Translates the error of one field, as if it were a problem of its own.
fn localize_field_error(error: FieldError, locale: Locale) -> FieldError {
    let with = [("field", Some(&error.field)), ("why", error.why.as_ref())];
    let with = with.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone()))).collect();
    let alone = Problem { params: with, ..Problem::new(422, "", &error.code, error.detail.clone()) };
    FieldError { detail: localize(alone, locale).detail, ..error }
}

/// Replaces the field's API name with its label in the form, and removes the code marks
/// that the API writes for programs.
fn use_field_label(sentence: String, field: Option<&str>, language: &'static Language) -> String {
    if !sentence.contains('`') {
        return sentence;
    }
    let named = match field.and_then(|field| Some((field, field_label(field, language)?))) {
        Some((field, label)) => sentence.replace(&format!("`{field}`"), label),
        None => sentence,
    };
    named.replace("or left out", "or empty").replace('`', "")
}

/// Returns the label of an API field in forms.
fn field_label(field: &str, language: &'static Language) -> Option<&'static str> {
    submit_form::field_label(field, language).or_else(|| {
        Some(match field {
            "allowed_networks" => language.server_pages().create.networks,
            "days" | "expires_in_days" | "expires_in_seconds" => language.token.days,
            "name" => language.server_pages().create.name,
            "overrides" => language.server_pages().train.settings,
            "role" => language.server_pages().people.role,
            _ => return None,
        })
    })
}

fn localized_sentence(problem: &Problem, locale: Locale) -> Option<String> {
    let language = Language::of(locale);
    let words = &language.server_pages().refused;
    let with = |name: &str| problem.params.get(name).map(String::as_str);
    // In English the API's sentences are more specific: they name the taken name, the
    // invalid labels or the allowed values.
    let own = |text: &'static str| (locale != Locale::En).then(|| text.to_owned());
    match problem.code.as_str() {
        "permission_denied" => {
            let permission = Permission::parse(with("permission")?)?;
            let roles = Role::ALL.into_iter().filter(|role| role.permissions().contains(permission)).map(Role::as_str);
            Some(words.permission.with(&[&permission.as_str(), &roles.collect::<Vec<_>>().join(", ")]))
        }
        "too_many_requests" if locale != Locale::En => {
            let seconds = with("retry_after_seconds")?.parse().ok()?;
            Some(words.rate_limited.of(language.format_duration(Millis::from_secs(seconds))))
        }
        "out_of_range" if locale != Locale::En => {
            let field = with("field")?;
            Some(words.out_of_range.of(field_label(field, language).unwrap_or(field)))
        }
        "weak_password" if locale != Locale::En => Some(match with("why")? {
            "short" => words.password_short.of(MIN_CHARS),
            "guessable" => words.password_guessable.to_owned(),
            "breached" => words.password_breached.to_owned(),
            "listed" => words.password_listed.to_owned(),
            _ => return None,
        }),
        "invalid_search" if locale != Locale::En => {
            let word = with("word")?;
            Some(match with("why")? {
                "key" => words.misread_key.with(&[&word, &with("allowed")?]),
                "value" => words.misread_value.with(&[&word, &with("allowed")?]),
                "empty" => words.misread_empty.of(word),
                "quote" => words.misread_quote.of(word),
                _ => return None,
            })
        }
        // The API's sentence describes credentials for programs; a user's session has ended.
        "not_authenticated" => Some(words.session_over.to_owned()),
        "name_taken" => own(words.name_taken),
        "invalid_name" => own(words.invalid_name),
        "invalid_labels" => own(words.invalid_labels),
        "password_needed" => own(words.password_needed),
        "wrong_code" => own(words.wrong_code),
        "factor_needed" => own(words.factor_needed),
        "wrong_passkey" => own(words.wrong_passkey),
        "passkey_expired" => own(words.passkey_expired),
        "passkey_copied" => own(words.passkey_copied),
        "wrong_password" => own(words.wrong_password),
        "wrong_token" => own(words.wrong_token),
        "concurrent_change" | "precondition_failed" => own(words.changed),
        "database_unavailable" => own(words.no_database),
        "internal_error" => own(words.failed),
        "method_not_allowed" => own(words.method),
        "cross_site_request" => own(words.cross_site),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(code: &str, with: &[(&str, &str)]) -> Problem {
        let with = with.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Problem { params: with, ..Problem::new(403, "Forbidden", code, "As in the API.") }
    }

    #[test]
    fn hints_and_refusals_name_the_shortest_password() {
        for locale in Locale::ALL {
            let words = Language::of(locale).server_pages();
            let refused = localize(problem("weak_password", &[("why", "short")]), locale).detail;
            // English uses the API's sentence.
            let refused = (locale != Locale::En).then_some(refused.as_str());
            for text in [words.login.password_hint, words.people.password_optional].into_iter().chain(refused) {
                assert!(text.contains(&MIN_CHARS.to_string()), "{locale:?}: {text}");
            }
        }
    }

    #[test]
    fn a_field_is_named_as_the_form_names_it() {
        let message = |field: &str, detail: &str, locale| {
            let problem = Problem { detail: detail.to_owned(), ..problem("out_of_range", &[("field", field)]) };
            localize(problem, locale).detail
        };
        assert_eq!(
            message("gpu_count", "`gpu_count` must be 1 to 64, or left out.", Locale::En),
            "GPUs must be 1 to 64, or empty."
        );
        assert_eq!(message("gpus", "`gpus` must be 1 to 64.", Locale::En), "GPUs must be 1 to 64.");
        assert_eq!(message("name", "`name` must be 1 to 32 letters.", Locale::En), "Name must be 1 to 32 letters.");
        assert_eq!(message("until", "`until` must be after `since`.", Locale::En), "until must be after since.");
        for locale in Locale::ALL {
            let message = message("gpu_count", "`gpu_count` must be 1 to 64.", locale);
            assert!(message.contains("GPU") && !message.contains("gpu_count"), "{locale:?}: {message}");
        }
    }

    #[test]
    fn each_field_is_described_as_if_it_were_the_only_one() {
        let error = |field: &str, code: &str, why: Option<&str>| FieldError {
            field: field.to_owned(),
            code: code.to_owned(),
            detail: format!("`{field}` must be as the API says."),
            why: why.map(str::to_owned),
        };
        let errors = vec![error("gpu_count", "out_of_range", None), error("password", "weak_password", Some("short"))];
        let problem_with_fields = Problem { errors, ..problem("out_of_range", &[("field", "gpu_count")]) };
        let messages = |locale| {
            let errors = localize(problem_with_fields.clone(), locale).errors.into_iter();
            errors.map(|error| error.detail).collect::<Vec<_>>()
        };
        assert_eq!(messages(Locale::En), ["GPUs must be as the API says.", "password must be as the API says."]);
        for locale in Locale::ALL.into_iter().filter(|locale| *locale != Locale::En) {
            let messages = messages(locale);
            assert!(
                messages[0].contains("GPU") && messages[1].contains(&MIN_CHARS.to_string()),
                "{locale:?}: {messages:?}"
            );
        }
    }

    #[test]
    fn a_missing_permission_is_named_with_the_roles_that_have_it() {
        for locale in Locale::ALL {
            let message = localize(problem("permission_denied", &[("permission", "queue.manage")]), locale).detail;
            assert!(message.contains("queue.manage") && message.contains("lead, admin"), "{locale:?}: {message}");
        }
    }

    #[test]
    fn frequent_errors_are_in_the_readers_language_and_others_as_in_the_api() {
        let codes =
            ["name_taken", "invalid_name", "invalid_labels", "out_of_range", "password_needed", "wrong_password"];
        let more = ["too_many_requests", "concurrent_change", "database_unavailable", "method_not_allowed"];
        for code in codes.into_iter().chain(more) {
            let refused = problem(code, &[("field", "days"), ("retry_after_seconds", "90")]);
            let mut messages: Vec<String> = Locale::ALL.map(|locale| localize(refused.clone(), locale).detail).into();
            assert_eq!(messages[0], "As in the API.", "{code}: in English");
            messages.sort();
            messages.dedup();
            assert_eq!(messages.len(), Locale::ALL.len(), "{code}: a sentence of its own in each language");
        }
        for why in ["key", "value", "empty", "quote"] {
            let refused = problem("invalid_search", &[("word", "a:b"), ("why", why), ("allowed", "on, off")]);
            let messages = Locale::ALL.map(|locale| localize(refused.clone(), locale).detail);
            assert!(messages[1..].iter().all(|message| message.contains("a:b")), "{why}: {messages:?}");
        }
        assert_eq!(localize(problem("last_admin", &[]), Locale::Ja).detail, "As in the API.");
        assert_eq!(localize(problem("permission_denied", &[]), Locale::Ja).detail, "As in the API.");
    }
}
