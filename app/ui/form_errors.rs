//! Errors of a form, each at its control (`aria-invalid`, `aria-describedby`); the first
//! invalid control gets the focus.

use leptos::prelude::*;

use crate::protocol::problem::{FieldError, Problem};

/// The ID of a form control, with its names in problems: fields of the API, or codes that concern this field only.
pub(crate) type FieldAliases<'n> = (&'n str, &'n [&'n str]);

/// The errors of a form by field. It is `Copy`, for all parts of the form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FormErrors(StoredValue<FieldErrors>);

#[derive(Debug, Default)]
struct FieldErrors {
    /// IDs and messages in the order of the form.
    fields: Vec<(String, String)>,
    /// Errors that belong to no field.
    general: Option<Problem>,
}

impl Default for FormErrors {
    fn default() -> Self {
        Self(StoredValue::new(FieldErrors::default()))
    }
}

impl FormErrors {
    /// Creates the errors of a form with these fields; none without a problem.
    pub(crate) fn from_problem(problem: Option<Problem>, fields: &[FieldAliases<'_>]) -> Self {
        Self(StoredValue::new(
            problem.map_or_else(FieldErrors::default, |problem| FieldErrors::from_problem(problem, fields)),
        ))
    }

    /// Returns the errors that belong to no field, which are shown above the form.
    pub(crate) fn general(self) -> Option<Problem> {
        self.0.with_value(|errors| errors.general.clone())
    }

    /// Returns the message of a field.
    pub(crate) fn message(self, id: &str) -> Option<String> {
        self.0.with_value(|errors| errors.fields.iter().find(|(field, _)| field == id).map(|(_, text)| text.clone()))
    }

    /// Returns the `aria-invalid` of a field.
    pub(crate) fn aria_invalid(self, id: &str) -> Option<&'static str> {
        self.has_any(&[id]).then_some("true")
    }

    /// Returns the `aria-describedby` of a field: its hint, if any, and its error.
    pub(crate) fn aria_describedby(self, id: &str, hint: Option<&str>) -> Option<String> {
        let error = self.has_any(&[id]).then(|| error_id(id));
        let ids: Vec<String> = hint.map(str::to_owned).into_iter().chain(error).collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }

    /// Returns whether a field is the first invalid one.
    pub(crate) fn is_first(self, id: &str) -> bool {
        self.0.with_value(|errors| errors.fields.first().is_some_and(|(first, _)| first == id))
    }

    /// Returns whether any of these fields is invalid.
    pub(crate) fn has_any(self, ids: &[&str]) -> bool {
        self.0.with_value(|errors| errors.fields.iter().any(|(field, _)| ids.contains(&field.as_str())))
    }

    /// Returns whether no field is invalid.
    pub(crate) fn is_empty(self) -> bool {
        self.0.with_value(|errors| errors.fields.is_empty())
    }
}

impl FieldErrors {
    fn from_problem(problem: Problem, fields: &[FieldAliases<'_>]) -> Self {
        let errors = if problem.errors.is_empty() { vec![single_error(&problem)] } else { problem.errors.clone() };
        let belongs_to = |error: &FieldError, (id, names): &FieldAliases<'_>| {
            error.field == *id || names.contains(&error.field.as_str()) || names.contains(&error.code.as_str())
        };
        let joined_details = |errors: Vec<&FieldError>| {
            let details: Vec<&str> = errors.into_iter().map(|error| error.detail.as_str()).collect();
            (!details.is_empty()).then(|| details.join(" "))
        };
        let field_error = |aliases: &FieldAliases<'_>| {
            let text = joined_details(errors.iter().filter(|error| belongs_to(error, aliases)).collect())?;
            Some((aliases.0.to_owned(), text))
        };
        let rest = joined_details(
            errors.iter().filter(|error| !fields.iter().any(|aliases| belongs_to(error, aliases))).collect(),
        );
        Self {
            fields: fields.iter().filter_map(field_error).collect(),
            general: rest.map(|detail| Problem { detail, ..problem }),
        }
    }
}

/// Returns the ID of the element with the error of a control.
pub(crate) fn error_id(id: &str) -> String {
    format!("{id}-error")
}

/// Converts a problem without a list of errors into a single error.
fn single_error(problem: &Problem) -> FieldError {
    let field = problem.params.get("field").cloned().unwrap_or_default();
    FieldError { field, code: problem.code.clone(), detail: problem.detail.clone(), why: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(field: &str, code: &str) -> FieldError {
        FieldError { field: field.to_owned(), code: code.to_owned(), detail: format!("{field} is wrong."), why: None }
    }

    fn problem(errors: Vec<FieldError>) -> Problem {
        Problem { errors, ..Problem::new(422, "", "name_taken", "It is taken.") }
    }

    const FORM: [FieldAliases<'_>; 3] =
        [("name", &["name_taken"]), ("gpus", &["gpu_count"]), ("labels", &["worker_labels"])];

    #[test]
    fn each_error_stands_at_its_field_and_the_first_has_the_focus() {
        let owner = Owner::new();
        owner.set();
        let errors = [error("worker_labels", "a"), error("gpus", "b"), error("gpu_count", "c")];
        let errors = FormErrors::from_problem(Some(problem(errors.into())), &FORM);
        assert_eq!(errors.message("gpus").as_deref(), Some("gpus is wrong. gpu_count is wrong."));
        assert_eq!((errors.aria_invalid("labels"), errors.aria_invalid("name")), (Some("true"), None));
        assert_eq!([errors.is_first("gpus"), errors.is_first("labels"), errors.is_first("name")], [true, false, false]);
        assert_eq!(errors.aria_describedby("gpus", Some("gpus-hint")).as_deref(), Some("gpus-hint gpus-error"));
        assert_eq!(errors.aria_describedby("labels", None).as_deref(), Some("labels-error"));
        assert_eq!(
            (errors.aria_describedby("name", Some("h")).as_deref(), errors.aria_describedby("name", None)),
            (Some("h"), None)
        );
        assert!(errors.has_any(&["labels"]) && !errors.has_any(&["name"]) && errors.general().is_none());
    }

    #[test]
    fn error_without_a_field_is_above_the_form() {
        let owner = Owner::new();
        owner.set();
        let form_errors = |problem| FormErrors::from_problem(Some(problem), &FORM);
        assert_eq!(form_errors(problem(Vec::new())).message("name").as_deref(), Some("It is taken."), "by its code");
        let ranged = Problem { params: [("field".to_owned(), "gpu_count".to_owned())].into(), ..problem(Vec::new()) };
        assert_eq!(
            form_errors(Problem { code: "out_of_range".to_owned(), ..ranged }).message("gpus").as_deref(),
            Some("It is taken.")
        );
        let mixed = form_errors(problem(vec![error("gpus", "a"), error("other", "b")]));
        assert_eq!(mixed.general().map(|rest| rest.detail).as_deref(), Some("other is wrong."));
        let general_only = form_errors(Problem::new(503, "", "database_unavailable", "Later."));
        assert_eq!(
            (general_only.is_empty(), general_only.general().map(|rest| rest.detail).as_deref()),
            (true, Some("Later."))
        );
        assert!(FormErrors::from_problem(None, &FORM).is_empty());
    }
}
