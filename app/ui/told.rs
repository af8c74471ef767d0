//! What the server refuses, in the reader's language. The API's sentences are English; a page says them as its reader
//! does, by the problem's code and what it carries with it. What has no sentence here stays as it is.

use super::locales::Language;
use super::prefs::Locale;
use crate::domain::access::{Permission, Role};
use crate::domain::password::SHORTEST;
use crate::domain::time::Millis;
use crate::protocol::problem::Problem;

/// The problem as the reader is told it.
pub fn told(mut problem: Problem, locale: Locale) -> Problem {
    if let Some(sentence) = sentence(&problem, locale) {
        problem.detail = sentence;
    }
    problem
}

fn sentence(problem: &Problem, locale: Locale) -> Option<String> {
    let language = Language::of(locale);
    let words = &language.plain().refused;
    let with = |name: &str| problem.with.get(name).map(String::as_str);
    // In English the API's own sentences say more: the name that is taken, the labels that are wrong, what is allowed.
    let own = |text: &'static str| (locale != Locale::En).then(|| text.to_owned());
    match problem.code.as_str() {
        "permission_denied" => {
            let permission = Permission::parse(with("permission")?)?;
            let roles = Role::ALL.into_iter().filter(|role| role.permissions().has(permission)).map(Role::as_str);
            Some(words.permission.with(&[&permission.as_str(), &roles.collect::<Vec<_>>().join(", ")]))
        }
        "too_many_requests" if locale != Locale::En => {
            let seconds = with("retry_after_seconds")?.parse().ok()?;
            Some(words.too_many.of(language.span(Millis::seconds(seconds))))
        }
        "out_of_range" if locale != Locale::En => Some(words.out_of_range.of(with("field")?)),
        "weak_password" if locale != Locale::En => Some(match with("why")? {
            "short" => words.password_short.of(SHORTEST),
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
        // The API tells programs what to send; a reader has lost what they came with.
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
        "changed_meanwhile" | "precondition_failed" => own(words.changed),
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
        Problem { with, ..Problem::new(403, "Forbidden", code, "As the API says it.") }
    }

    #[test]
    fn hints_and_refusals_name_the_shortest_password() {
        for locale in Locale::ALL {
            let words = Language::of(locale).plain();
            let refused = told(problem("weak_password", &[("why", "short")]), locale).detail;
            // In English the API's own sentence stands.
            let refused = (locale != Locale::En).then_some(refused.as_str());
            for text in [words.login.password_hint, words.people.password_optional].into_iter().chain(refused) {
                assert!(text.contains(&SHORTEST.to_string()), "{locale:?}: {text}");
            }
        }
    }

    #[test]
    fn a_missing_permission_is_named_with_the_roles_that_have_it() {
        for locale in Locale::ALL {
            let said = told(problem("permission_denied", &[("permission", "queue.manage")]), locale).detail;
            assert!(said.contains("queue.manage") && said.contains("lead, admin"), "{locale:?}: {said}");
        }
    }

    #[test]
    fn frequent_refusals_are_said_in_the_readers_language_and_others_as_the_api_does() {
        let codes =
            ["name_taken", "invalid_name", "invalid_labels", "out_of_range", "password_needed", "wrong_password"];
        let more = ["too_many_requests", "changed_meanwhile", "database_unavailable", "method_not_allowed"];
        for code in codes.into_iter().chain(more) {
            let refused = problem(code, &[("field", "days"), ("retry_after_seconds", "90")]);
            let mut said: Vec<String> = Locale::ALL.map(|locale| told(refused.clone(), locale).detail).into();
            assert_eq!(said[0], "As the API says it.", "{code}: in English");
            said.sort();
            said.dedup();
            assert_eq!(said.len(), Locale::ALL.len(), "{code}: a sentence of its own in each language");
        }
        for why in ["key", "value", "empty", "quote"] {
            let refused = problem("invalid_search", &[("word", "a:b"), ("why", why), ("allowed", "on, off")]);
            let said = Locale::ALL.map(|locale| told(refused.clone(), locale).detail);
            assert!(said[1..].iter().all(|said| said.contains("a:b")), "{why}: {said:?}");
        }
        assert_eq!(told(problem("last_admin", &[]), Locale::Ja).detail, "As the API says it.");
        assert_eq!(told(problem("permission_denied", &[]), Locale::Ja).detail, "As the API says it.");
    }
}
