//! The values of the form in which a job is submitted.

use std::collections::BTreeMap;

use crate::ui::submit_form::SubmitField;

#[derive(Clone)]
pub(super) struct TrainFormFields(pub(super) BTreeMap<String, String>);

impl TrainFormFields {
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn text_or(&self, name: &str, default_text: &str) -> String {
        self.0.get(name).filter(|text| !text.is_empty()).map_or_else(|| default_text.to_owned(), Clone::clone)
    }

    /// Whether a field differs from its default.
    pub(super) fn is_changed(&self, field: &SubmitField) -> bool {
        let default_text = field.default_text();
        self.text_or(field.name, &default_text) != default_text
    }
}
