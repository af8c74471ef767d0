//! What the check of a configuration found, in words: the server renders it, and the browser does while the user types.

use std::collections::BTreeMap;
use std::fmt::Write;

use leptos::prelude::*;

use crate::domain::config_check::keys::{AgentUse, KeyKind};
use crate::domain::config_check::scan::SyntaxFault;
use crate::domain::config_check::{CheckedFile, Finding, FindingKind, Place, Severity, check, utf16_position};
use crate::domain::config_files::CONFIG_FILE;
use crate::domain::text::escape;
use crate::ui::configs::is_json;
use crate::ui::erase::Erase;
use crate::ui::locales::sentence::fill;

/// The maximum number of findings that are listed.
const MAX_FINDINGS: usize = 20;
/// The maximum number of characters of a key that are shown.
const MAX_KEY_CHARS: usize = 60;

/// The sentences of findings by their code. They are in the page of the editor only, because no other needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingWords(BTreeMap<String, String>);

impl FindingWords {
    /// The sentences of a language.
    #[cfg(feature = "ssr")]
    pub fn new(words: &crate::ui::locales::words::ServerPagesConfigsCheck) -> Self {
        let codes = crate::ui::locales::words::ServerPagesConfigsCheck::WORDS;
        let sentence = |code: &str| Some((code.to_owned(), words.of(code)?.to_owned()));
        Self(codes.into_iter().filter_map(sentence).collect())
    }

    /// The text from which [`Self::parse`] reads them.
    #[cfg(feature = "ssr")]
    pub fn embedded(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Reads the sentences of the page.
    #[cfg(any(feature = "hydrate", test))]
    pub fn parse(embedded: &str) -> Option<Self> {
        serde_json::from_str(embedded).ok().map(Self)
    }

    fn of(&self, code: &str, values: &[&str]) -> String {
        fill(self.0.get(code).map_or("", String::as_str), values)
    }

    fn sentence(&self, kind: &FindingKind) -> String {
        let shown = |key: &str| {
            let key = escape(key);
            if key.chars().nth(MAX_KEY_CHARS).is_none() {
                return key.into_owned();
            }
            key.chars().take(MAX_KEY_CHARS).chain(['…']).collect()
        };
        match kind {
            FindingKind::Syntax(fault) => self.of(syntax_code(*fault), &[]),
            FindingKind::NotAnObject => self.of("not_an_object", &[]),
            FindingKind::DuplicateKey(key) => self.of("duplicate_key", &[&shown(key)]),
            FindingKind::SimilarKey { key, known } => self.of("similar_key", &[&shown(key), known]),
            FindingKind::WrongKind { key, expected } => self.of(wrong_code(*expected), &[&shown(key)]),
            FindingKind::ChangedByAgent { key, change } => self.of(agent_code(*change), &[&shown(key)]),
        }
    }
}

/// The code of a fault's sentence.
const fn syntax_code(fault: SyntaxFault) -> &'static str {
    match fault {
        SyntaxFault::Empty => "empty",
        SyntaxFault::ByteOrderMark => "byte_order_mark",
        SyntaxFault::UnclosedBracket => "unclosed_bracket",
        SyntaxFault::UnclosedString => "unclosed_string",
        SyntaxFault::TrailingComma => "trailing_comma",
        SyntaxFault::MissingComma => "missing_comma",
        SyntaxFault::MissingColon => "missing_colon",
        SyntaxFault::MissingValue => "missing_value",
        SyntaxFault::UnquotedKey => "unquoted_key",
        SyntaxFault::SingleQuotes => "single_quotes",
        SyntaxFault::Comment => "comment",
        SyntaxFault::UnknownWord => "unknown_word",
        SyntaxFault::InvalidNumber => "invalid_number",
        SyntaxFault::NumberTooLarge => "number_too_large",
        SyntaxFault::InvalidEscape => "invalid_escape",
        SyntaxFault::ControlCharacter => "control_character",
        SyntaxFault::UnexpectedCharacter => "unexpected_character",
        SyntaxFault::TextAfterEnd => "text_after_end",
        SyntaxFault::TooDeep => "too_deep",
    }
}

const fn wrong_code(expected: KeyKind) -> &'static str {
    match expected {
        KeyKind::Text => "wrong_text",
        KeyKind::Whole => "wrong_whole",
        KeyKind::Number => "wrong_number",
        KeyKind::Webhooks => "wrong_webhooks",
    }
}

const fn agent_code(change: AgentUse) -> &'static str {
    match change {
        AgentUse::Replaces => "agent_replaces",
        AgentUse::Extends => "agent_extends",
        AgentUse::Resumes => "agent_resumes",
    }
}

/// What is shown of the findings of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FindingList {
    lines: Vec<FindingLine>,
    /// That there are none, or how many more.
    note: Option<String>,
}

/// A finding in words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FindingLine {
    severity: Severity,
    severity_word: String,
    sentence: String,
    place: String,
    /// What a script selects: the positions in the text as a browser counts.
    selection: String,
}

impl FindingList {
    /// Checks a file; empty if it is not JSON.
    pub fn new(file_name: &str, text: &str, words: &FindingWords) -> Self {
        let Some(file) = checked_file(file_name) else { return Self::default() };
        let findings = check(text, file);
        let note = match findings.len() {
            0 => Some(words.of("none", &[])),
            count if count > MAX_FINDINGS => Some(words.of("more", &[&(count - MAX_FINDINGS).to_string()])),
            _ => None,
        };
        let line = |Finding { span, kind }: &Finding| {
            let Place { line, column } = Place::of(text, span.start);
            let severity = kind.severity();
            let severity_code = match severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            FindingLine {
                severity,
                severity_word: words.of(severity_code, &[]),
                sentence: words.sentence(kind),
                place: words.of("place", &[&line.to_string(), &column.to_string()]),
                selection: format!("{}-{}", utf16_position(text, span.start), utf16_position(text, span.end)),
            }
        };
        Self { lines: findings.iter().take(MAX_FINDINGS).map(line).collect(), note }
    }

    /// Returns whether something prevents saving.
    #[cfg(feature = "hydrate")]
    pub fn has_errors(&self) -> bool {
        self.lines.iter().any(|line| line.severity == Severity::Error)
    }
}

/// The findings; each place is a button that a script selects by.
#[component]
pub(crate) fn Findings(list: FindingList) -> impl IntoView {
    let lines = list.lines.into_iter().map(|line| {
        let class = match line.severity {
            Severity::Error => "finding is-error",
            Severity::Warning => "finding is-warning",
            Severity::Note => "finding",
        };
        view! {
            <li class=class>
                <span class="finding-kind">{line.severity_word}</span>
                <span class="grow">
                    {line.sentence}" "
                    <button type="button" class="quiet-link js-only" data-select=line.selection>{line.place.clone()}</button>
                    <span class="no-js-only">{line.place}</span>
                </span>
            </li>
        }
    });
    let lines = lines.collect_view();
    view! {
        {(!lines.is_empty()).then(|| view! { <ul class="findings-list">{lines}</ul> })}
        {list.note.map(|note| view! { <p class="findings-note">{note}</p> })}
    }
    .into_erased()
}

fn checked_file(name: &str) -> Option<CheckedFile> {
    let is_config = name == CONFIG_FILE;
    is_json(name).then_some(if is_config { CheckedFile::Config } else { CheckedFile::Json })
}

/// Returns the numbers of the lines of a text, one a line.
pub(crate) fn line_numbers(text: &str) -> String {
    let count = text.matches('\n').count() + 1;
    let mut numbers = String::with_capacity(count * 5);
    for number in 1..=count {
        let _written = writeln!(numbers, "{number}");
    }
    numbers
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::domain::config_check::keys::KNOWN_KEYS;
    use crate::ui::locales::Language;
    use crate::ui::locales::words::{ServerPagesConfigsCheck, ServerPagesConfigsKeys};
    use crate::ui::prefs::Locale;

    fn words() -> FindingWords {
        FindingWords::new(&Language::of(Locale::En).server_pages().configs.check)
    }

    #[test]
    fn each_finding_has_a_sentence() {
        let syntax = SyntaxFault::ALL.map(syntax_code);
        let others =
            ["not_an_object", "duplicate_key", "similar_key", "none", "place", "more", "error", "warning", "note"];
        let (kinds, uses) = (KeyKind::ALL.map(wrong_code), AgentUse::ALL.map(agent_code));
        let mut codes: Vec<&str> = [&syntax[..], &others, &kinds, &uses].concat();
        codes.sort_unstable();
        let mut words = ServerPagesConfigsCheck::WORDS;
        words.sort_unstable();
        assert_eq!(codes, words);
    }

    #[test]
    fn each_known_key_has_a_sentence() {
        assert_eq!(KNOWN_KEYS.map(|key| key.name), ServerPagesConfigsKeys::WORDS);
    }

    #[test]
    fn browser_reads_the_sentences_of_the_server() {
        assert_eq!(FindingWords::parse(&words().embedded()), Some(words()));
    }

    /// Severity, sentence, place and selection of each finding, and the note.
    fn listed(file_name: &str, text: &str) -> (Vec<[String; 4]>, String) {
        let FindingList { lines, note } = FindingList::new(file_name, text, &words());
        let line = |line: FindingLine| [line.severity_word, line.sentence, line.place, line.selection];
        (lines.into_iter().map(line).collect(), note.unwrap_or_default())
    }

    #[test]
    fn findings_are_listed_with_their_place() {
        let (lines, _) = listed("config.json", "{\n  \"sed\": 1,\n}");
        assert_eq!((lines.len(), lines[0][2].as_str(), lines[0][3].as_str()), (1, "Line 2, column 11", "12-13"));
        let (lines, _) = listed("config.json", "{\"é😀\": 1, \"sed\": 1}");
        let expected = ["Warning", "sed is not a known key. Did you mean seed?", "Line 1, column 11", "11-16"];
        assert_eq!(lines, [expected.map(str::to_owned)]);
        assert_eq!(listed("config.json", "{}"), (Vec::new(), "No problems found.".to_owned()));
        assert_eq!(listed("prompts.txt", "{"), (Vec::new(), String::new()));
        assert_eq!(listed("a.JSON", "{").0[0][0], "Error");
    }

    #[test]
    fn keys_are_escaped_and_shortened() {
        let (lines, _) = listed("config.json", "{\"<i>\u{202e}\": 1, \"<i>\u{202e}\": 2}");
        assert_eq!(lines[0][1], "<i>\\u{202e} is set twice. The later value counts.");
        let key = "k".repeat(5_000);
        let (lines, _) = listed("config.json", &format!("{{\"{key}\": 1, \"{key}\": 2}}"));
        assert!(lines[0][1].len() < 120 && lines[0][1].contains('…'), "{lines:?}");
        let (lines, note) = listed("config.json", &format!("{{{}\"a\": 1}}", "\"a\": 1, ".repeat(500)));
        assert_eq!((lines.len(), note.as_str()), (MAX_FINDINGS, "and 480 more"));
    }

    #[test]
    fn each_line_has_a_number() {
        assert_eq!((line_numbers(""), line_numbers("a\nb\n")), ("1\n".to_owned(), "1\n2\n3\n".to_owned()));
    }
}
