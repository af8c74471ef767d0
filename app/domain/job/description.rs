//! What users call a job, for themselves and others to find it: it decides nothing about how the job runs.

use std::collections::BTreeSet;

use crate::domain::allowed_values::AllowedValues;

const MAX_NAME_CHARS: usize = 128;
const MAX_NOTES_CHARS: usize = 10_000;
const MAX_TAGS: usize = 32;
const MAX_TAG_CHARS: usize = 64;

/// A field that is invalid, and what is allowed in it.
type InvalidField = (&'static str, AllowedValues);
const INVALID_NAME: InvalidField = ("name", AllowedValues::Line { max: MAX_NAME_CHARS as u64 });
const INVALID_NOTES: InvalidField = ("notes", AllowedValues::Length { max: MAX_NOTES_CHARS as u64 });
const INVALID_TAGS: InvalidField =
    ("tags", AllowedValues::Tags { max: MAX_TAGS as u64, max_chars: MAX_TAG_CHARS as u64 });

/// The name, the tags and the notes of a job. Its owner can change them at any time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobDescription {
    /// Its name: one line, not necessarily unique.
    pub name: Option<String>,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// Notes, of several lines.
    pub notes: Option<String>,
}

/// A change of a description; what is omitted stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescriptionChange {
    /// The new name; an empty one removes it.
    pub name: Option<String>,
    /// The new notes; empty ones remove them.
    pub notes: Option<String>,
    /// All tags; none for those that the job has.
    pub tags: Option<BTreeSet<String>>,
    /// Tags to add.
    pub add_tags: BTreeSet<String>,
    /// Tags to remove.
    pub remove_tags: BTreeSet<String>,
}

impl JobDescription {
    /// Parses what a user entered: text is trimmed, and what is then empty is omitted.
    pub fn parse<'t>(
        name: Option<&str>,
        tags: impl IntoIterator<Item = &'t str>,
        notes: Option<&str>,
    ) -> Result<Self, InvalidField> {
        let trimmed = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let (name, notes) = (trimmed(name), trimmed(notes));
        if name.as_deref().is_some_and(|name| name.chars().count() > MAX_NAME_CHARS || name.contains(char::is_control))
        {
            return Err(INVALID_NAME);
        }
        let is_control = |character: char| character.is_control() && !['\n', '\r', '\t'].contains(&character);
        if notes.as_deref().is_some_and(|notes| notes.chars().count() > MAX_NOTES_CHARS || notes.contains(is_control)) {
            return Err(INVALID_NOTES);
        }
        let tags = tags.into_iter().map(parse_tag).collect::<Result<BTreeSet<String>, _>>()?;
        if tags.len() > MAX_TAGS { Err(INVALID_TAGS) } else { Ok(Self { name, tags, notes }) }
    }

    /// Returns this description after a change.
    pub fn changed(self, change: &DescriptionChange) -> Result<Self, InvalidField> {
        let DescriptionChange { name, notes, tags, add_tags, remove_tags } = change;
        let removed: BTreeSet<&str> = remove_tags.iter().map(|tag| tag.trim()).collect();
        let tags = tags.as_ref().unwrap_or(&self.tags).iter().map(String::as_str);
        let tags = tags.filter(|tag| !removed.contains(tag)).chain(add_tags.iter().map(String::as_str));
        let text = |new: &Option<String>, old: &Option<String>| new.clone().or_else(|| old.clone());
        let (name, notes) = (text(name, &self.name), text(notes, &self.notes));
        Self::parse(name.as_deref(), tags, notes.as_deref())
    }

    /// A description with all its parts, for tests.
    #[cfg(any(test, feature = "native"))]
    pub fn example() -> Self {
        Self {
            name: Some("rank 16, no text encoder".to_owned()),
            tags: ["ablation".to_owned(), "flux".to_owned()].into(),
            notes: Some("Compare with the run of Monday.\nThe learning rate is new.".to_owned()),
        }
    }
}

fn parse_tag(tag: &str) -> Result<String, InvalidField> {
    let tag = tag.trim();
    // Lists of tags are separated by commas, and queries quote them.
    let is_invalid = |character: char| character.is_control() || [',', '"'].contains(&character);
    let is_valid = !tag.is_empty() && tag.chars().count() <= MAX_TAG_CHARS && !tag.contains(is_invalid);
    if is_valid { Ok(tag.to_owned()) } else { Err(INVALID_TAGS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_trimmed_and_empty_text_omitted() {
        let parsed = JobDescription::parse(Some("  rank 16 "), [" b", "a ", "b"], Some("\n first\nsecond \n"));
        let expected = JobDescription {
            name: Some("rank 16".to_owned()),
            tags: ["a".to_owned(), "b".to_owned()].into(),
            notes: Some("first\nsecond".to_owned()),
        };
        assert_eq!(parsed, Ok(expected));
        assert_eq!(JobDescription::parse(Some(" "), [], Some("\n")), Ok(JobDescription::default()));
    }

    #[test]
    fn change_keeps_what_it_omits() {
        let before = JobDescription::example();
        assert_eq!(before.clone().changed(&DescriptionChange::default()), Ok(before.clone()));
        let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<BTreeSet<_>>();
        let change = DescriptionChange { add_tags: tags(&["new"]), remove_tags: tags(&["flux"]), ..Default::default() };
        let after = before.clone().changed(&change).expect("valid");
        assert_eq!(after, JobDescription { tags: tags(&["ablation", "new"]), ..before.clone() });
        let text = |text: &str| Some(text.to_owned());
        let cleared =
            DescriptionChange { name: text(" "), notes: text(""), tags: Some(tags(&[])), ..Default::default() };
        assert_eq!(before.clone().changed(&cleared), Ok(JobDescription::default()));
        assert_eq!(before.changed(&DescriptionChange { name: text("a\nb"), ..Default::default() }), Err(INVALID_NAME));
    }

    #[test]
    fn every_script_is_accepted() {
        for text in ["实验 12", "تجربة", "тест №3", "🔥 e\u{301}", "a < b & 'c'"] {
            let parsed = JobDescription::parse(Some(text), [text], Some(text)).expect("valid");
            assert_eq!((parsed.name.as_deref(), parsed.tags.contains(text)), (Some(text), true));
        }
    }

    #[test]
    fn invalid_parts_are_named() {
        let of_name = |name: &str| JobDescription::parse(Some(name), [], None);
        let of_tag = |tag: &str| JobDescription::parse(None, [tag], None);
        let of_notes = |notes: &str| JobDescription::parse(None, [], Some(notes));
        assert!(of_name(&"é".repeat(MAX_NAME_CHARS)).is_ok());
        assert_eq!(of_name(&"é".repeat(MAX_NAME_CHARS + 1)), Err(INVALID_NAME));
        assert_eq!(of_name("two\nlines"), Err(INVALID_NAME));
        assert!(of_tag(&"é".repeat(MAX_TAG_CHARS)).is_ok());
        for tag in ["", " ", "a,b", "a\"b", "a\u{7}b", &"é".repeat(MAX_TAG_CHARS + 1)] {
            assert_eq!(of_tag(tag), Err(INVALID_TAGS), "{tag}");
        }
        assert!(of_notes(&"é".repeat(MAX_NOTES_CHARS)).is_ok());
        assert_eq!(of_notes(&"é".repeat(MAX_NOTES_CHARS + 1)), Err(INVALID_NOTES));
        assert_eq!(of_notes("a\u{1b}[31mb"), Err(INVALID_NOTES));
        let tags: Vec<String> = (0..=MAX_TAGS).map(|n| n.to_string()).collect();
        assert_eq!(JobDescription::parse(None, tags.iter().map(String::as_str), None), Err(INVALID_TAGS));
    }
}
