//! A configuration as a form: a new one, or the next revision of one.

use std::collections::BTreeMap;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::{Skeleton, use_desk};
use crate::protocol::configs::ConfigDetail;
use crate::protocol::percent;
use crate::protocol::problem::Problem;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::format::{config_address, html_text, query_string};
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// The file that every configuration has.
const MAIN: &str = "config.json";
/// What a new one begins with.
const BLANK: &str = "{\n}\n";
/// The longest name, in characters.
const LONGEST_NAME: usize = 64;
/// So many files more can be added at once.
const MORE: usize = 2;
/// The most text that is edited here, in bytes: sent as a form, it is up to three times as long.
const LARGEST: usize = 64 << 10;

/// The page that makes one.
#[component]
pub(crate) fn ConfigNewPage() -> impl IntoView {
    let words = &t().plain().configs;
    let desk = use_desk();
    let (problem, typed) = refused(FormName::Config);
    let may = Resource::new(|| (), move |()| desk.config_to_edit(None));
    let shown = move || {
        let (problem, typed) = (problem.clone(), typed.clone());
        Suspend::new(async move {
            match may.await {
                Ok(_) => view! { <New problem=problem typed=typed/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.new above=("/configs", words.title) intro=words.new_intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

#[component]
fn New(problem: Option<Problem>, typed: BTreeMap<String, String>) -> impl IntoView {
    let words = &t().plain().configs;
    let name = typed.get("name").cloned().unwrap_or_default();
    let is_taken = problem.as_ref().is_some_and(|problem| problem.code == "precondition_failed");
    let taken = is_taken.then(|| {
        let that_one = format!("{}/edit", config_address(&name));
        view! {
            <p class="field-error" id="name-error" role="alert">{words.taken}" "<a class="quiet-link" href=that_one>{name.clone()}</a></p>
        }
    });
    let mut files = typed_files(&typed);
    if files.is_empty() {
        files.push(File::of(MAIN, BLANK));
    }
    view! {
        <form method="post" action="/ui/configs" class="config-form">
            <section class="panel form">
                <Field id="name" label=words.name>
                    <input class="input w-full" id="name" name="name" required=true maxlength="64" autocomplete="off" spellcheck="false"
                        aria-invalid=is_taken.then_some("true") aria-describedby=is_taken.then_some("name-error") value=name.clone()/>
                    {taken}
                </Field>
            </section>
            <Files files=files problem=problem.filter(|_| !is_taken)/>
            <Actions back="/configs".to_owned()/>
        </form>
    }
    .erased()
}

/// The page that edits one.
#[component]
pub(crate) fn ConfigEditPage() -> impl IntoView {
    let words = &t().plain().configs;
    // The router would decode it twice.
    let path = use_location().pathname.get_untracked();
    let name = percent::decoded(path.trim_end_matches("/edit").rsplit('/').next().unwrap_or_default());
    let desk = use_desk();
    let (problem, typed) = refused(FormName::Config);
    let newest = Resource::new(|| (), {
        let name = name.clone();
        move |()| desk.config_to_edit(Some(name.clone()))
    });
    let shown = move || {
        let (problem, typed) = (problem.clone(), typed.clone());
        Suspend::new(async move {
            match newest.await {
                Ok(newest) => newest.map(|newest| view! { <Edit newest=newest problem=problem typed=typed/> }).erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    let above = (config_address(&name), name.clone());
    view! {
        <PageHead title=words.edit_title.of(&name) above=above intro=words.edit_intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

#[component]
fn Edit(newest: ConfigDetail, problem: Option<Problem>, typed: BTreeMap<String, String>) -> impl IntoView {
    let words = &t().plain().configs;
    let ConfigDetail { config, bundle } = newest;
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let is_theirs = prefs.may_change(config.owner.as_deref());
    if bundle.files.values().map(String::len).sum::<usize>() > LARGEST {
        return view! {
            <div class="panel form">
                <p>{words.too_large}</p>
                <code class="font-mono text-sm">"simpletuner configs push DIRECTORY"</code>
            </div>
        }
        .erased();
    }
    let is_late = problem.as_ref().is_some_and(|problem| problem.code == "precondition_failed");
    // Who is told of the newest revision may store theirs after it.
    let meanwhile = is_late.then(|| {
        let seen = typed.get("revision").cloned();
        let query = [("revision", Some(config.revision.to_string())), ("against", seen)];
        let changes = config_address(&config.name) + &query_string(&query);
        view! {
            <div class="notice notice-bad" role="alert">
                <Icon glyph=Glyph::Warning/>
                <p class="grow">{words.meanwhile.of(config.revision)}" "<a class="quiet-link" href=changes target="_blank">{words.what_changed_in.of(config.revision)}</a></p>
            </div>
        }
    });
    let mut files = typed_files(&typed);
    if files.is_empty() {
        files.extend(bundle.files.into_iter().map(|(name, text)| File::of(&name, &text)));
        files.sort_by_key(|file| file.name != MAIN);
    }
    let address = config_address(&config.name);
    let action = if is_theirs { format!("/ui{address}") } else { "/ui/configs".to_owned() };
    let of = if is_theirs {
        view! { <input type="hidden" name="revision" value=config.revision.to_string()/> }.erased()
    } else {
        let name: String = format!("{}-{}", config.name, prefs.reader()).chars().take(LONGEST_NAME).collect();
        view! {
            <div class="notice"><Icon glyph=Glyph::Copy/><p class="grow">{words.copy_intro}</p></div>
            <section class="panel form">
                <Field id="name" label=words.name>
                    <input class="input w-full" id="name" name="name" required=true maxlength="64" autocomplete="off"
                        spellcheck="false" value=name/>
                </Field>
            </section>
        }
        .erased()
    };
    view! {
        {meanwhile}
        <form method="post" action=action class="config-form">
            {of}
            <Files files=files problem=problem.filter(|_| !is_late)/>
            <Actions back=address/>
        </form>
    }
    .erased()
}

/// A file as the form holds it.
#[derive(Default)]
struct File {
    name: String,
    text: String,
    is_gone: bool,
}

impl File {
    fn of(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), is_gone: false }
    }
}

/// What was typed, if the form was refused.
fn typed_files(typed: &BTreeMap<String, String>) -> Vec<File> {
    let file = |place: usize| {
        let field = |what: &str| typed.get(&format!("{what}.{place}")).cloned();
        Some(File { name: field("file")?, text: field("text").unwrap_or_default(), is_gone: field("gone").is_some() })
    };
    let mut files: Vec<File> = (0..).map_while(file).collect();
    while files.last().is_some_and(|last| last.name.is_empty() && last.text.trim().is_empty()) {
        files.pop();
    }
    files
}

/// The files, and room for more. What is wrong with one is said at it.
#[component]
fn Files(files: Vec<File>, problem: Option<Problem>) -> impl IntoView {
    let is_of_main = problem.as_ref().is_some_and(|problem| problem.code.starts_with("config_json"));
    let (mut main, other) = if is_of_main { (problem, None) } else { (None, problem) };
    let there = files.len();
    let all = files.into_iter().chain(std::iter::repeat_with(File::default).take(MORE)).enumerate();
    let sections = all.map(|(place, file)| {
        let wrong = if file.name == MAIN { main.take() } else { None };
        view! { <FileSection place=place file=file is_new={place >= there} wrong=wrong/> }
    });
    let sections = sections.collect_view();
    view! { {other.map(|problem| view! { <Refusal problem=problem/> })} {sections} }.erased()
}

#[component]
fn FileSection(place: usize, file: File, is_new: bool, wrong: Option<Problem>) -> impl IntoView {
    let words = &t().plain().configs;
    let id = |what: &str| format!("{what}.{place}");
    let error = wrong.is_some().then(|| id("error"));
    let (is_main, is_gone) = (file.name == MAIN, file.is_gone);
    let name = if is_main {
        view! { <input type="hidden" name=id("file") value=MAIN/> }.erased()
    } else {
        view! {
            <div class="field">
                <label for=id("file")>{words.file_name}</label>
                {is_new.then(|| view! { <p class="field-hint" id=id("hint")>{words.file_name_hint}</p> })}
                <input class="input w-full font-mono" id=id("file") name=id("file") maxlength="512" autocomplete="off" spellcheck="false"
                    aria-describedby=is_new.then(|| id("hint")) value=file.name.clone()/>
            </div>
        }
        .erased()
    };
    let gone = (!is_main && !is_new).then(|| {
        view! {
            <span class="tick">
                <input type="checkbox" class="checkbox checkbox-sm" id=id("gone") name=id("gone") value="true" checked=is_gone/>
                <label for=id("gone")>{words.leave_out}</label>
            </span>
        }
    });
    let lines = file.text.lines().count().clamp(3, 30) + 1;
    // Of such a field the first line's end is left out.
    let text = format!("\n{}", file.text);
    let title = if is_new { words.another_file.to_owned() } else { file.name };
    view! {
        <section class="panel form" aria-labelledby=id("head")>
            <h2 id=id("head") class=if is_new { "panel-title" } else { "panel-title font-mono wrap-anywhere" }>{title.clone()}</h2>
            {name}
            <div class="field">
                <label for=id("text")>{words.file_text}<span class="sr-only">": "{title}</span></label>
                <textarea class="textarea w-full font-mono" id=id("text") name=id("text") rows=lines.to_string() maxlength=LARGEST.to_string()
                    spellcheck="false" autocapitalize="none" dir="ltr" aria-invalid=error.is_some().then_some("true")
                    aria-describedby=error>{html_text(&text)}</textarea>
                {wrong.map(|problem| view! { <p class="field-error" id=id("error") role="alert">{problem.detail}</p> })}
            </div>
            {gone}
        </section>
    }
    .erased()
}

#[component]
fn Actions(back: String) -> impl IntoView {
    view! {
        <div class="form-actions">
            <button class="btn btn-primary"><Icon glyph=Glyph::Check/>{t().plain().configs.save}</button>
            <a class="btn btn-ghost" href=back>{t().common.cancel}</a>
        </div>
    }
    .erased()
}
