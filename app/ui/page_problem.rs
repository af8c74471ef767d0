//! Problems as pages show them. The sentences are the API's, which names its own fields and credentials.

use super::locales::Language;
use super::prefs::Locale;
use super::submit_form;
use crate::protocol::problem::{FieldError, Problem};

/// Rewrites a problem for users of pages.
pub fn word_for_page(mut problem: Problem, locale: Locale) -> Problem {
    let language = Language::of(locale);
    let words = &language.server_pages().errors;
    match problem.code.as_str() {
        // The API's sentence describes credentials for programs; a user's session has ended.
        "not_authenticated" => words.session_over.clone_into(&mut problem.detail),
        "method_not_allowed" => words.method.clone_into(&mut problem.detail),
        _ => {}
    }
    let field = problem.params.get("field").map(String::as_str);
    problem.detail = use_field_label(problem.detail, field, language);
    for FieldError { field, detail, .. } in &mut problem.errors {
        *detail = use_field_label(std::mem::take(detail), Some(field), language);
    }
    problem
}

/// Replaces the field's API name with its label in the form, and removes the code marks
/// that the API writes for programs.
fn use_field_label(sentence: String, field: Option<&str>, language: &'static Language) -> String {
    if !sentence.contains('`') {
        return sentence;
    }
    let labeled = match field.and_then(|field| Some((field, field_label(field, language)?))) {
        Some((field, label)) => sentence.replace(&format!("`{field}`"), label),
        None => sentence,
    };
    labeled.replace("or left out", "or empty").replace('`', "")
}

/// Returns the label of an API field in forms.
fn field_label(field: &str, language: &'static Language) -> Option<&'static str> {
    submit_form::field_label(field, language).or_else(|| {
        Some(match field {
            "allowed_networks" => language.server_pages().create.networks,
            "days" | "expires_in_days" | "expires_in_seconds" => language.token.days,
            "name" => language.server_pages().create.name,
            "overrides" => language.server_pages().train.settings,
            "role" => language.server_pages().users.role,
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::password::MIN_CHARS;
    use crate::ui::problem_sentence::ProblemSentence;

    fn out_of_range(field: &str) -> ProblemSentence {
        ProblemSentence::OutOfRangeOptionalNumber { field: field.to_owned(), min: "1".to_owned(), max: "64".to_owned() }
    }

    fn problem(sentence: &ProblemSentence, field: &str, locale: Locale) -> Problem {
        let params = [("field".to_owned(), field.to_owned())].into();
        Problem { params, ..Problem::new(422, "", sentence.code(), sentence.text(locale)) }
    }

    #[test]
    fn hints_and_problems_name_the_shortest_password() {
        for locale in Locale::ALL {
            let words = Language::of(locale).server_pages();
            let rejected = ProblemSentence::WeakPasswordShort { min: MIN_CHARS.to_string() }.text(locale);
            for text in [words.login.password_hint, words.users.password_optional, &rejected] {
                assert!(text.contains(&MIN_CHARS.to_string()), "{locale:?}: {text}");
            }
        }
    }

    #[test]
    fn a_field_is_named_as_the_form_names_it() {
        let message = |field: &str, locale| word_for_page(problem(&out_of_range(field), field, locale), locale).detail;
        assert_eq!(message("gpu_count", Locale::En), "GPUs must be 1 to 64, or empty.");
        assert_eq!(message("name", Locale::En), "Name must be 1 to 64, or empty.");
        assert_eq!(message("until", Locale::En), "until must be 1 to 64, or empty.");
        for locale in Locale::ALL {
            let message = message("gpu_count", locale);
            assert!(message.contains("GPU") && !message.contains(['`', '_']), "{locale:?}: {message}");
        }
    }

    #[test]
    fn each_field_is_described_as_if_it_were_the_only_one() {
        for locale in Locale::ALL {
            let error = |field: &str| FieldError {
                field: field.to_owned(),
                code: "out_of_range".to_owned(),
                detail: out_of_range(field).text(locale),
                why: None,
            };
            let errors = ["gpu_count", "name"].map(error).into();
            let combined = Problem { errors, ..problem(&out_of_range("gpu_count"), "gpu_count", locale) };
            let details = word_for_page(combined, locale).errors.into_iter().map(|error| error.detail);
            let separate = ["gpu_count", "name"]
                .map(|field| word_for_page(problem(&out_of_range(field), field, locale), locale).detail);
            assert_eq!(details.collect::<Vec<_>>(), separate, "{locale:?}");
        }
    }

    #[test]
    fn a_page_tells_users_what_the_api_tells_programs() {
        for locale in Locale::ALL {
            let words = &Language::of(locale).server_pages().errors;
            let page_text = |sentence: ProblemSentence| word_for_page(problem(&sentence, "", locale), locale).detail;
            assert_eq!(page_text(ProblemSentence::NotAuthenticated), words.session_over);
            assert_eq!(page_text(ProblemSentence::MethodNotAllowed), words.method);
            assert_eq!(page_text(ProblemSentence::LastAdmin), ProblemSentence::LastAdmin.text(locale));
        }
    }
}
