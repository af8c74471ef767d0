//! The toolbar above a log: search it, jump to a line, wrap lines, copy lines, and download it.

use leptos::ev::{Event, KeyboardEvent, SubmitEvent, keydown};
use leptos::html::Input;
use leptos::prelude::*;

use super::icon::Icon;
use super::log_copy::CopySelected;
use super::log_reader::LogReader;
use super::rank_log::RankPicker;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::logs::search::LogSearchState;
use crate::ui::logs::view_state::{LogSearchTerms, LogViewState};

#[component]
pub(crate) fn LogToolbar(reader: LogReader, ranks: Memo<Vec<u32>>) -> impl IntoView {
    let words = t();
    let (job, attempt) = reader.log.with_value(|log| (log.job.clone(), log.attempt));
    let raw_log_url = format!("/api/queue/{job}/logs?attempt={attempt}&raw=1");
    let href_of = move |view_state: LogViewState| reader.log.with_value(|log| view_state.href(&log.job));
    let wrap = move || {
        href_of(reader.view_state.with(|view_state| LogViewState { wrap: !view_state.wrap, ..view_state.clone() }))
    };
    let times = move || {
        href_of(reader.view_state.with(|view_state| LogViewState { times: !view_state.times, ..view_state.clone() }))
    };
    let has_times = move || reader.view_state.with(|view_state| view_state.times.then_some("true"));
    let is_wrapped = move || reader.view_state.with(|view_state| view_state.wrap.then_some("true"));
    let errors = move || {
        href_of(reader.view_state.with(|view_state| LogViewState {
            search: LogSearchTerms::errors(),
            selected_lines: None,
            ..view_state.clone()
        }))
    };
    let has_errors =
        move || reader.view_state.with(|view_state| (view_state.search == LogSearchTerms::errors()).then_some("true"));
    let error_link = move || {
        let line = reader.error_line.get()?;
        let href = href_of(reader.view_state.with(|view_state| view_state.with_line(line)));
        // Without scripts, the page is scrolled to the line.
        Some(
            view! { <a class="btn btn-xs btn-soft btn-error" href=format!("{href}#L{line}") data-noscroll="">{words.log.go_to_error}</a> },
        )
    };
    view! {
        <div class="log-bar">
            <SearchForm reader=reader/>
            <MatchNavigation reader=reader/>
            <div class="log-tools">
                <CopySelected reader=reader/>
                {error_link}
                <RankPicker job=job.clone() ranks=ranks view_state=reader.view_state/>
                <a class="toggle-button" href=errors title=words.logs.errors_hint aria-current=has_errors data-noscroll="">{words.logs.errors}</a>
                <a class="toggle-button" href=times title=words.log.times_hint aria-current=has_times data-noscroll="">{words.log.times}</a>
                <a class="toggle-button" href=wrap aria-current=is_wrapped data-noscroll="">{words.log.wrap}</a>
                <JumpForm reader=reader/>
                <a class="btn btn-xs btn-ghost" rel="external" href=raw_log_url><Icon glyph=Glyph::Download/>{words.log.raw}</a>
            </div>
        </div>
    }
    .into_erased()
}

#[component]
fn SearchForm(reader: LogReader) -> impl IntoView {
    let words = &t().logs;
    let field = NodeRef::<Input>::new();
    let (regex, case) = (NodeRef::<Input>::new(), NodeRef::<Input>::new());
    let terms = Memo::new(move |_| reader.view_state.with(|view_state| view_state.search.clone()));
    let entered_terms = move || {
        let is_checked = |field: NodeRef<Input>| field.get_untracked().is_some_and(|field| field.checked());
        let q = field.get_untracked().map(|field| field.value()).unwrap_or_default();
        LogSearchTerms { q, regex: is_checked(regex), case: is_checked(case) }
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let (search, view_state) = (entered_terms(), reader.view_state.get_untracked());
        if search == view_state.search {
            reader.go_to_match(false);
        } else {
            reader.navigate_to(&LogViewState { search, ..view_state }, false);
        }
    };
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Enter" && event.shift_key() && entered_terms() == terms.get_untracked() {
            event.prevent_default();
            reader.go_to_match(true);
        }
    };
    let on_toggle = move |event: Event| {
        if !entered_terms().q.is_empty() {
            browser::submit_enclosing_form(&event);
        }
    };
    // The URL may have changed by other means, such as the back button.
    Effect::new(move |last: Option<()>| {
        let terms = terms.get();
        if last.is_some() {
            if let (Some(field), Some(regex), Some(case)) = (field.get(), regex.get(), case.get()) {
                field.set_value(&terms.q);
                regex.set_checked(terms.regex);
                case.set_checked(terms.case);
            }
            reader.start_search();
        }
    });
    bind_search_shortcut(reader, field);
    let LogViewState { attempt, wrap, times, .. } = reader.view_state.get_untracked();
    let action = reader.log.with_value(|log| format!("/jobs/{}/log", log.job));
    let terms = terms.get_untracked();
    view! {
        <form class="log-search" role="search" method="get" action=action on:submit=submit>
            {attempt.map(|attempt| view! { <input type="hidden" name="attempt" value=attempt.to_string()/> })}
            {wrap.then(|| view! { <input type="hidden" name="wrap" value="true"/> })}
            {times.then(|| view! { <input type="hidden" name="times" value="true"/> })}
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{words.search}</label>
            <input class="input input-sm" id="q" name="q" type="search" autocomplete="off" spellcheck="false" placeholder=words.search_hint value=terms.q node_ref=field on:keydown=on_key/>
            <span class="log-how"><input type="checkbox" name="case" value="true" checked=terms.case title=words.case aria-label=words.case node_ref=case on:change=on_toggle/><span aria-hidden="true">"Aa"</span></span>
            <span class="log-how"><input type="checkbox" name="regex" value="true" checked=terms.regex title=words.regex aria-label=words.regex node_ref=regex on:change=on_toggle/><span aria-hidden="true">".*"</span></span>
        </form>
    }
    .into_erased()
}

/// Makes Ctrl+F (⌘F on a Mac) focus the search field while the focus is in the log: the browser's own search would find
/// only the few lines that are in the document.
fn bind_search_shortcut(reader: LogReader, field: NodeRef<Input>) {
    let listener = window_event_listener(keydown, move |event: KeyboardEvent| {
        let in_log =
            || reader.scroll_area.get_untracked().is_some_and(|area| area.contains(browser::focused_node().as_ref()));
        let is_plain = !event.alt_key() && !event.shift_key();
        let is_find_shortcut = event.key() == "f" && (event.ctrl_key() || event.meta_key()) && is_plain && in_log();
        if let (true, Some(field)) = (is_find_shortcut && !event.default_prevented(), field.get_untracked()) {
            event.prevent_default();
            field.select();
            let _focused = field.focus();
        }
    });
    on_cleanup(move || listener.remove());
}

/// The number of matches, and buttons for the previous and next one. The buttons are not rendered again as matches are
/// found, because one of them may have the focus.
#[component]
fn MatchNavigation(reader: LogReader) -> impl IntoView {
    let words = t();
    let problem = Memo::new(move |_| reader.search.with(|search| search.as_ref().map(|search| search.problem.clone())));
    let count = move || reader.search.with(|search| search.as_ref().map(match_count_text)).unwrap_or_default();
    let match_link = move |label: &'static str, glyph, line_of: fn(&LogSearchState) -> Option<u64>, backward: bool| {
        let href = move || {
            let line = reader.search.with(|search| search.as_ref().and_then(line_of))?;
            Some(reader.log.with_value(|log| {
                reader.view_state.with_untracked(|view_state| view_state.with_line(line).href(&log.job))
            }))
        };
        let on_click = move |event: leptos::ev::MouseEvent| {
            event.prevent_default();
            reader.go_to_match(backward);
        };
        // Without an `href` it is not a link yet, and the browser does not turn these keys into clicks.
        let on_key = move |event: KeyboardEvent| {
            if matches!(event.key().as_str(), "Enter" | " ") {
                event.prevent_default();
                reader.go_to_match(backward);
            }
        };
        view! { <a class="icon-button" href=href role="button" tabindex="0" aria-label=label title=label on:click=on_click on:keydown=on_key><Icon glyph=glyph/></a> }
    };
    let status = move |problem: Option<String>| match problem {
        Some(problem) => view! { <span class="log-problem" role="alert">{problem}</span> }.into_erased(),
        None => view! {
            <span class="log-count" role="status">{count}</span>
            {match_link(words.logs.previous, Glyph::Up, |search| search.before, true)}
            {match_link(words.logs.next, Glyph::Down, |search| search.after, false)}
        }
        .into_erased(),
    };
    (move || problem.get().map(|problem| view! { <div class="log-matches">{status(problem)}</div> })).into_erased()
}

fn match_count_text(search: &LogSearchState) -> String {
    let words = t();
    match (search.line, search.rank) {
        _ if search.is_all && search.count == 0 => words.logs.none.to_owned(),
        (Some(_), Some(rank)) if search.is_all => {
            words.logs.rank.with(&[&words.format_integer(rank), &words.format_integer(search.count)])
        }
        _ if search.is_all => words.logs.matches.of(search.count),
        _ => words.logs.so_far.of(words.format_integer(search.count)),
    }
}

#[component]
fn JumpForm(reader: LogReader) -> impl IntoView {
    let words = &t().logs;
    let field = NodeRef::<Input>::new();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let line = field.get_untracked().and_then(|field| field.value().parse::<u64>().ok());
        if let Some(line) = line.filter(|line| *line > 0) {
            let line = line.min(reader.cache.with_untracked(|cache| cache.total).max(1));
            reader.navigate_to(&reader.view_state.get_untracked().with_line(line), false);
        }
    };
    let LogViewState { attempt, wrap, times, search, .. } = reader.view_state.get_untracked();
    let action = reader.log.with_value(|log| format!("/jobs/{}/log", log.job));
    let hidden = [
        ("attempt", attempt.map(|attempt| attempt.to_string())),
        ("wrap", wrap.then(|| "true".to_owned())),
        ("times", times.then(|| "true".to_owned())),
        ("q", Some(search.q).filter(|q| !q.is_empty())),
        ("regex", search.regex.then(|| "true".to_owned())),
        ("case", search.case.then(|| "true".to_owned())),
    ];
    let hidden = hidden
        .into_iter()
        .map(|(name, value)| value.map(|value| view! { <input type="hidden" name=name value=value/> }));
    view! {
        <form class="log-jump" method="get" action=action on:submit=submit>
            {hidden.collect_view()}
            <label class="sr-only" for="line">{words.line}</label>
            <input class="input input-xs" id="line" name="line" inputmode="numeric" autocomplete="off" placeholder=words.line node_ref=field/>
            <button class="btn btn-xs btn-ghost">{words.go}</button>
        </form>
    }
    .into_erased()
}
