//! Entries of the command palette: pages, preferences and actions that the page knows, and search results of the
//! server. An action opens the page that confirms it.

use crate::domain::access::Permission;
use crate::domain::fuzzy::FuzzyQuery;
use crate::protocol::search::{SearchHit, SearchHitKind, SearchQuery};
use crate::protocol::status::{JobStatus, WorkerStatus};
use crate::ui::components::status::worker_status_style;
use crate::ui::format::{config_url, short_id};
use crate::ui::glyph::Glyph;
use crate::ui::job_status::job_status_style;
use crate::ui::locales::Language;
use crate::ui::locales::sentence::Text;
use crate::ui::navigation::visible_pages;
use crate::ui::prefs::{Density, Keys, Locale, Prefs, Theme, Zone};
use crate::ui::status_style::StatusStyle;

/// The maximum number of entries from the page itself.
const MAX_LOCAL_ENTRIES: usize = 7;

/// What an entry opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PaletteTarget {
    /// A page; `live` pages are opened by the router, others are loaded.
    Page { href: String, live: bool },
    /// A preference, which is stored before the page reloads.
    Preference { name: &'static str, value: &'static str },
    /// The palette with this query.
    Search(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaletteEntry {
    pub glyph: Glyph,
    pub title: String,
    pub note: Option<String>,
    /// The kind of result.
    pub kind: Text,
    /// The state of a worker or job.
    pub status: Option<StatusStyle>,
    pub target: PaletteTarget,
}

/// An action on one worker or job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaletteAction {
    Drain,
    Resume,
    Cancel,
}

impl PaletteAction {
    const ALL: [Self; 3] = [Self::Drain, Self::Resume, Self::Cancel];

    fn label(self, words: &Language) -> Text {
        match self {
            Self::Drain => words.worker.drain,
            Self::Resume => words.worker.resume,
            Self::Cancel => words.job.cancel,
        }
    }

    const fn permission(self) -> Permission {
        match self {
            Self::Drain | Self::Resume => Permission::AdminWorkers,
            Self::Cancel => Permission::JobCancelOwn,
        }
    }

    /// Returns the prefix of IDs that the action applies to; searching for it lists all candidates.
    const fn id_prefix(self) -> &'static str {
        match self {
            Self::Drain | Self::Resume => "w_",
            Self::Cancel => "j_",
        }
    }

    /// Returns whether the action applies to a search result.
    fn applies_to(self, found: &SearchHit) -> bool {
        match self {
            Self::Drain => found.worker_status.is_some_and(|status| status != WorkerStatus::Draining),
            Self::Resume => found.worker_status == Some(WorkerStatus::Draining),
            Self::Cancel => found.job_status.is_some_and(|status| !status.is_terminal()),
        }
    }
}

/// Splits a query into the action that it begins with, if any, and the rest.
fn parse_action<'q>(words: &Language, search_text: &'q str) -> (Option<PaletteAction>, &'q str) {
    let matching_action = |action: PaletteAction| {
        let label = action.label(words);
        let head = search_text.get(..label.len()).filter(|head| head.to_lowercase() == label.to_lowercase())?;
        let rest = &search_text[head.len()..];
        (rest.is_empty() || rest.starts_with(' ')).then_some((Some(action), rest.trim()))
    };
    PaletteAction::ALL.into_iter().find_map(matching_action).unwrap_or((None, search_text))
}

/// Returns the query for the server, or `None` for an empty one.
pub(crate) fn server_query(words: &Language, search_text: &str) -> Option<SearchQuery> {
    let (action, rest) = parse_action(words, search_text.trim());
    let q = match (action, rest) {
        (Some(action), "") => action.id_prefix(),
        (None, "") => return None,
        (_, rest) => rest,
    };
    // The action may not apply to all results, so request more.
    Some(SearchQuery { q: q.chars().take(100).collect(), limit: Some(if action.is_some() { 50 } else { 12 }) })
}

/// Returns all entries for a query.
pub(crate) fn palette_entries(
    words: &'static Language,
    prefs: &Prefs,
    search_text: &str,
    found: &[SearchHit],
) -> Vec<PaletteEntry> {
    let (action, rest) = parse_action(words, search_text.trim());
    let mut entries = if action.is_some() { Vec::new() } else { local_entries(words, prefs, rest) };
    let matching_hits = found.iter().filter(|found| action.is_none_or(|action| action.applies_to(found)));
    entries.extend(matching_hits.map(|found| found_entry(words, action, found)));
    entries
}

/// Returns matching pages, actions and preferences.
fn local_entries(words: &'static Language, prefs: &Prefs, search_text: &str) -> Vec<PaletteEntry> {
    let shell = &words.shell;
    let page = |glyph, title: Text, href: &str, live| PaletteEntry {
        glyph,
        title: title.to_owned(),
        note: None,
        kind: shell.page,
        status: None,
        target: PaletteTarget::Page { href: href.to_owned(), live },
    };
    let mut entries: Vec<PaletteEntry> = visible_pages(prefs)
        .map(|nav_page| page(nav_page.glyph, (nav_page.label)(words), nav_page.href, nav_page.is_client_rendered))
        .collect();
    if prefs.has_permission(Permission::AdminWorkers) {
        entries.push(page(Glyph::Plus, words.workers.create, "/admin/workers/new", false));
    }
    if prefs.session.as_ref().is_some_and(|session| !session.single_user) {
        entries.push(page(Glyph::User, words.nav.account, "/account", false));
    }
    entries.push(page(Glyph::Gear, shell.preferences, "/preferences", false));
    let actions = PaletteAction::ALL.into_iter().filter(|action| prefs.has_permission(action.permission()));
    entries.extend(actions.map(|action| {
        PaletteEntry {
            kind: shell.action,
            target: PaletteTarget::Search(format!("{} ", action.label(words))),
            ..page(Glyph::Arrow, "", "", false)
        }
        .with_title(shell.verb.of(action.label(words)))
    }));
    if search_text.is_empty() {
        return entries;
    }
    entries.extend(preference_choices(words).into_iter().map(|(name, value, title)| {
        PaletteEntry {
            kind: shell.preferences,
            target: PaletteTarget::Preference { name, value },
            ..page(Glyph::Gear, "", "", false)
        }
        .with_title(title)
    }));
    let query = FuzzyQuery::parse(search_text);
    let with_score = |entry: PaletteEntry| Some((query.score(&[&entry.title])?, entry));
    let mut best_entries: Vec<(u32, PaletteEntry)> = entries.into_iter().filter_map(with_score).collect();
    best_entries.sort_by(|(a, _), (b, _)| b.cmp(a));
    best_entries.into_iter().take(MAX_LOCAL_ENTRIES).map(|(_, entry)| entry).collect()
}

impl PaletteEntry {
    fn with_title(self, title: String) -> Self {
        Self { title, ..self }
    }
}

/// Returns all values of the preferences: field, value and label.
fn preference_choices(words: &Language) -> Vec<(&'static str, &'static str, String)> {
    let (nav, shell) = (&words.nav, &words.shell);
    let theme = |theme| match theme {
        Theme::Light => nav.theme_light,
        Theme::System => nav.theme_system,
        Theme::Dark => nav.theme_dark,
    };
    let mut choices = Vec::new();
    let mut add =
        |field, name: Text, value, choice: Text| choices.push((field, value, shell.choice.with(&[&name, &choice])));
    for choice in Theme::ALL {
        add("theme", nav.theme, choice.as_str(), theme(choice));
    }
    for choice in Locale::ALL {
        add("language", nav.language, choice.tag(), choice.name());
    }
    for (choice, label) in Density::ALL.into_iter().zip([shell.comfortable, shell.compact]) {
        add("density", shell.density, choice.as_str(), label);
    }
    for (choice, label) in Zone::ALL.into_iter().zip([shell.utc, shell.local]) {
        add("zone", shell.zone, choice.as_str(), label);
    }
    for (choice, label) in Keys::ALL.into_iter().zip([shell.keys_on, shell.keys_off]) {
        add("keys", shell.keys, choice.as_str(), label);
    }
    choices
}

/// Returns the entry for a search result, or for the action on it.
fn found_entry(words: &'static Language, action: Option<PaletteAction>, found: &SearchHit) -> PaletteEntry {
    let (glyph, kind, path) = match found.kind {
        SearchHitKind::Worker => (Glyph::Workers, words.workers.worker, format!("/admin/workers/{}", found.id)),
        SearchHitKind::Job => (Glyph::Jobs, words.jobs.job, format!("/jobs/{}", found.id)),
        SearchHitKind::Config => (Glyph::File, words.job.configuration, config_url(&found.id)),
    };
    let query = match action {
        Some(PaletteAction::Drain) => "?confirm=drain",
        Some(PaletteAction::Resume) => "?confirm=resume",
        Some(PaletteAction::Cancel) => "?confirm=cancel",
        None => "",
    };
    let title = match action {
        Some(action) => words.shell.choice.with(&[&action.label(words), &found.name]),
        None => found.name.clone(),
    };
    let id = (found.kind == SearchHitKind::Job).then(|| short_id(&found.id));
    let note: Vec<String> = id.into_iter().chain(found.note.clone()).collect();
    let worker = found.worker_status.map(|status| worker_status_style(&words.status, status, found.note.is_some()));
    let job = |status: JobStatus| job_status_style(&words.status, status);
    PaletteEntry {
        glyph,
        title,
        note: Some(note.join(" · ")).filter(|note| !note.is_empty()),
        kind,
        status: worker.or_else(|| found.job_status.map(job)),
        target: PaletteTarget::Page { href: path + query, live: found.kind != SearchHitKind::Config },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::Permissions;
    use crate::protocol::access::SessionView;

    fn prefs(permissions: Permissions) -> Prefs {
        let session = SessionView {
            name: "ada".to_owned(),
            token_id: None,
            permissions,
            unread_notices: 0,
            single_user: false,
            server_version: String::new(),
            base_url: String::new(),
            fingerprint: None,
        };
        Prefs { session: Some(session), ..Prefs::default() }
    }

    fn found(kind: SearchHitKind, id: &str, worker: Option<WorkerStatus>, job: Option<JobStatus>) -> SearchHit {
        SearchHit {
            kind,
            id: id.to_owned(),
            name: "gpu-1".to_owned(),
            note: None,
            worker_status: worker,
            job_status: job,
        }
    }

    fn titles(prefs: &Prefs, search_text: &str, found: &[SearchHit]) -> Vec<String> {
        let words = Language::of(Locale::En);
        palette_entries(words, prefs, search_text, found).into_iter().map(|entry| entry.title).collect()
    }

    #[test]
    fn search_offers_only_permitted_pages_and_actions() {
        let all = titles(&prefs(Permissions::all()), "", &[]);
        for title in ["Workers", "Jobs", "Train in Cloud", "Preferences", "Drain …", "Cancel job …"] {
            assert!(all.iter().any(|entry_title| entry_title == title), "{title} in {all:?}");
        }
        let without_permissions = titles(&prefs(Permissions::default()), "", &[]);
        assert!(
            !without_permissions.iter().any(|title| ["Workers", "Drain …", "Create worker"].contains(&title.as_str())),
            "{without_permissions:?}"
        );
        assert_eq!(titles(&prefs(Permissions::all()), "dark", &[])[0], "Theme: Dark");
        assert_eq!(titles(&prefs(Permissions::all()), "日本", &[]), ["Language: 日本語"]);
    }

    #[test]
    fn action_lists_suitable_targets_and_links_to_their_confirmation() {
        let words = Language::of(Locale::En);
        let hits = [
            found(SearchHitKind::Worker, "w_1", Some(WorkerStatus::Idle), None),
            found(SearchHitKind::Worker, "w_2", Some(WorkerStatus::Draining), None),
            found(SearchHitKind::Job, "j_1", None, Some(JobStatus::Running)),
            found(SearchHitKind::Job, "j_2", None, Some(JobStatus::Completed)),
        ];
        for (search_text, href) in [
            ("Drain gpu", "/admin/workers/w_1?confirm=drain"),
            ("resume ", "/admin/workers/w_2?confirm=resume"),
            ("cancel job g", "/jobs/j_1?confirm=cancel"),
        ] {
            let entries = palette_entries(words, &prefs(Permissions::all()), search_text, &hits);
            let targets: Vec<_> = entries.into_iter().map(|entry| entry.target).collect();
            assert_eq!(targets, [PaletteTarget::Page { href: href.to_owned(), live: true }], "{search_text}");
        }
        assert_eq!(titles(&prefs(Permissions::all()), "drained", &hits).len(), 4, "another word is no action");
        let q = |search_text| server_query(words, search_text).map(|query| query.q);
        assert_eq!(q("drain"), Some("w_".to_owned()));
        assert_eq!((q("drain gpu"), q("  "), q("gpu 1")), (Some("gpu".to_owned()), None, Some("gpu 1".to_owned())));
    }
}
