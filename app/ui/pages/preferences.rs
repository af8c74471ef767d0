//! Preferences of a browser, stored in cookies.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::ui::components::page_header::PageHeader;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::prefs::{Density, Keys, Locale, Prefs, Theme, Zone};

/// The page. It leads back to the previous page, which then follows the new preferences.
#[component]
pub(crate) fn PreferencesPage() -> impl IntoView {
    let (words, shell, nav) = (&t().server_pages().preferences, &t().shell, &t().nav);
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let next = use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/preferences".to_owned());
    let theme = |choice| match choice {
        Theme::Light => nav.theme_light,
        Theme::System => nav.theme_system,
        Theme::Dark => nav.theme_dark,
    };
    let themes = Theme::ALL.map(|choice| (choice.as_str(), theme(choice), choice == prefs.theme)).to_vec();
    let densities = options(Density::ALL, prefs.density, Density::as_str, [shell.comfortable, shell.compact]);
    let zones = options(Zone::ALL, prefs.zone, Zone::as_str, [shell.utc, shell.local]);
    let keys = options(Keys::ALL, prefs.keys, Keys::as_str, [shell.keys_on, shell.keys_off]);
    let keys_hint = words.keys_hint.replace("Ctrl", prefs.command_key());
    view! {
        <PageHeader title=shell.preferences intro=words.intro/>
        <section class="panel form">
            <form method="post" action="/ui/preferences" class="space-y-5">
                <input type="hidden" name="next" value=next/>
                <LanguageSelect/>
                <RadioSegments name="theme" label=nav.theme hint=words.theme_hint options=themes/>
                <RadioSegments name="density" label=shell.density hint=words.density_hint options=densities/>
                <RadioSegments name="zone" label=shell.zone hint=words.zone_hint options=zones/>
                <RadioSegments name="keys" label=shell.keys hint=keys_hint options=keys/>
                <div class="form-actions"><button class="btn btn-primary">{words.save}</button></div>
            </form>
        </section>
    }
    .into_erased()
}

/// The value and label of each option, and whether it is selected.
type SegmentOptions = Vec<(&'static str, Text, bool)>;

fn options<C: Copy + PartialEq>(
    all: [C; 2],
    chosen: C,
    value_of: fn(C) -> &'static str,
    labels: [Text; 2],
) -> SegmentOptions {
    all.into_iter().zip(labels).map(|(choice, label)| (value_of(choice), label, choice == chosen)).collect()
}

/// A select box of all languages, each with its own name.
#[component]
fn LanguageSelect() -> impl IntoView {
    let current = t().locale;
    let options = Locale::ALL.map(|locale| {
        view! { <option value=locale.tag() lang=locale.tag() selected={locale == current}>{locale.name()}</option> }
    });
    view! {
        <div class="field">
            <label for="language">{t().nav.language}</label>
            <select class="select w-full max-w-xs" id="language" name="language">{options.collect_view()}</select>
        </div>
    }
    .into_erased()
}

/// A few options side by side.
#[component]
fn RadioSegments(
    name: &'static str,
    label: Text,
    #[prop(into)] hint: String,
    options: SegmentOptions,
) -> impl IntoView {
    let option = |(value, label, chosen): (&'static str, Text, bool)| {
        view! {
            <label>
                <input type="radio" class="radio radio-sm radio-primary" name=name value=value checked=chosen/>
                {label}
            </label>
        }
    };
    let hint_id = format!("{name}-hint");
    let described_by = hint_id.clone();
    view! {
        <fieldset class="field" aria-describedby=described_by>
            <legend>{label}</legend>
            <p class="field-hint" id=hint_id>{hint}</p>
            <div class="segments">{options.into_iter().map(option).collect_view()}</div>
        </fieldset>
    }
    .into_erased()
}
