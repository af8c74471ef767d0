//! The fields of the submit form, for all that names, shows or parses them: the form, the links to it, the commands that it
//! suggests, and errors.

mod fields;

pub use self::fields::SUBMIT_FIELDS;
#[cfg(feature = "ssr")]
pub use self::fields::parse_tags;
#[cfg(feature = "ssr")]
use crate::domain::allowed_values::AllowedValues;
#[cfg(feature = "ssr")]
use crate::domain::labels::LabelsError;
use crate::protocol::jobs::SubmitJob;
#[cfg(feature = "ssr")]
use crate::ui::form_errors::FieldAliases;
#[cfg(feature = "ssr")]
use crate::ui::locales::Language;
#[cfg(feature = "ssr")]
use crate::ui::locales::sentence::Text;

/// A field of the submit form. The configuration and its revision have controls of their own.
pub struct SubmitField {
    /// Its name in the form, and in addresses of the page.
    pub name: &'static str,
    /// Its name in the API, and codes of problems that concern this field only.
    pub api_names: &'static [&'static str],
    /// Its values in a submit; a flag of the command line has one of them.
    pub values: fn(&SubmitJob) -> Vec<String>,
    /// These values as the form shows them. Several are fields of one name.
    form_values: fn(Vec<String>) -> Vec<String>,
    /// Whether an address contains it even if it has its default.
    in_every_address: bool,
    /// What only the server needs.
    #[cfg(feature = "ssr")]
    pub server: ServerField,
}

/// A text in each language.
#[cfg(feature = "ssr")]
pub(crate) type Label = fn(&'static Language) -> Text;

/// How the form draws and parses a field, and the command line names it.
#[cfg(feature = "ssr")]
pub struct ServerField {
    /// Its flag on the command line.
    pub flag: &'static str,
    /// Its label, also in errors.
    pub(crate) label: Label,
    /// The explanation at its control.
    pub(crate) hint: Option<Label>,
    /// Where the form has it.
    pub(crate) section: Section,
    pub(crate) control: Control,
    /// Parses the text of the form, which is not empty.
    pub parse: fn(&mut SubmitJob, &str) -> Result<(), InvalidText>,
}

/// A section of the form.
#[cfg(feature = "ssr")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// What the user calls the job.
    Description,
    /// What a worker must have.
    Requirements,
    /// Numbers that limit the job.
    Limits,
    /// The other advanced settings.
    Behavior,
    /// Outside of these sections.
    Separate,
}

/// The control of a field.
#[cfg(feature = "ssr")]
#[derive(Clone, Copy)]
pub(crate) enum Control {
    /// A whole number with limits, or any number above zero.
    Number(AllowedValues),
    Text,
    /// A text of several lines.
    Lines,
    /// The words, with their labels; the first one is the default.
    Select(&'static [(Text, Label)]),
    Checkbox,
    /// A control that its section draws.
    Custom,
    /// A control that its section draws, with its error.
    CustomWithError,
}

/// Why the text of a field is invalid.
#[cfg(feature = "ssr")]
pub enum InvalidText {
    /// What is allowed.
    Allowed(AllowedValues),
    /// Invalid labels.
    Labels(LabelsError),
}

impl SubmitField {
    /// Returns its values if they are not the default ones.
    pub fn changed_values(&self, job: &SubmitJob) -> Option<Vec<String>> {
        let values = (self.values)(job);
        (values != (self.values)(&SubmitJob::new(""))).then_some(values)
    }

    /// Returns whether it is only set or not.
    #[cfg(feature = "ssr")]
    pub const fn is_switch(&self) -> bool {
        matches!(self.server.control, Control::Checkbox)
    }

    /// Returns its text in an empty form.
    #[cfg(feature = "ssr")]
    pub(crate) fn default_text(&self) -> String {
        (self.form_values)((self.values)(&SubmitJob::new(""))).concat()
    }
}

/// Returns the names and values of the fields in the address of a form that is filled in with this job.
pub(crate) fn address_fields(job: &SubmitJob) -> impl Iterator<Item = (&'static str, String)> {
    SUBMIT_FIELDS.iter().flat_map(move |field| {
        let always = || field.in_every_address.then(|| (field.values)(job));
        let values = field.changed_values(job).or_else(always).unwrap_or_default();
        (field.form_values)(values).into_iter().map(|value| (field.name, value))
    })
}

/// Returns the fields that show their errors, in the order of the form.
#[cfg(feature = "ssr")]
pub(crate) fn fields_with_errors() -> Vec<FieldAliases<'static>> {
    let shows = |field: &&SubmitField| !matches!(field.server.control, Control::Custom | Control::Checkbox);
    SUBMIT_FIELDS.iter().filter(shows).map(|field| (field.name, field.api_names)).collect()
}

/// Returns the fields of a section.
#[cfg(feature = "ssr")]
pub(crate) fn fields_of(section: Section) -> impl Iterator<Item = &'static SubmitField> {
    SUBMIT_FIELDS.iter().filter(move |field| field.server.section == section)
}

/// Returns the label of a field by its name in the form or the API.
#[cfg(feature = "ssr")]
pub(crate) fn field_label(name: &str, language: &'static Language) -> Option<Text> {
    let is_named = |field: &&SubmitField| field.name == name || field.api_names.contains(&name);
    let field = SUBMIT_FIELDS.iter().filter(|field| field.server.section != Section::Separate).find(is_named)?;
    Some((field.server.label)(language))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn each_field_of_a_submit_has_a_field_of_the_form() {
        // The form names the configuration with its revision, and checks instead of a dry run.
        let others = ["config_name", "config_revision", "dry_run"];
        let example = serde_json::to_value(SubmitJob::example()).expect("a document");
        let names = example.as_object().expect("an object").keys().map(String::as_str);
        for name in names.filter(|name| !others.contains(name)) {
            assert!(SUBMIT_FIELDS.iter().any(|field| field.api_names[0] == name), "{name}");
        }
    }

    #[test]
    fn what_an_address_contains_is_parsed_to_the_same_submit() {
        let example = SubmitJob { config_revision: None, dry_run: false, ..SubmitJob::example() };
        let mut submit = SubmitJob::new(&example.config_name);
        for field in SUBMIT_FIELDS {
            let values = address_fields(&example).filter(|(name, _)| *name == field.name).map(|(_, value)| value);
            let text = values.collect::<Vec<_>>().join("\n");
            assert!((field.server.parse)(&mut submit, &text).is_ok(), "{}: {text}", field.name);
        }
        assert_eq!(submit, example);
    }
}
