//! The frame around every page but the login: navigation at the side, at the bottom of a small screen.

use leptos::prelude::*;
use leptos_router::components::{A, Outlet};
use leptos_router::hooks::use_location;

use super::action::SignOut;
use super::connection::{Connection, SessionOver};
use super::failure::use_here;
use super::flash_banner::FlashBanner;
use super::icon::{Glyph, Icon};
use super::keyboard::Habits;
use super::palette::SearchButton;
use super::theme_switch::ThemeSwitch;
use super::toasts::NotesMenu;
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;
use crate::ui::live::use_live;
use crate::ui::places::{Group, Place, places};
use crate::ui::prefs::Prefs;

/// The frame; the page goes into its middle.
#[component]
pub(crate) fn Layout() -> impl IntoView {
    let words = t();
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let live = use_live();
    let is_stale = move || live.is_stale();
    let administers = places(&prefs).any(|place| place.group == Group::Administration);
    let unread = prefs.session.as_ref().is_some_and(|session| session.unread_notices > 0);
    let activity = unread.then(|| {
        view! {
            <p class="notice notice-warn">
                <Icon glyph=Glyph::Warning/>
                <a class="row-link" rel="external" href="/account#notices">{words.nav.account_activity}</a>
            </p>
        }
    });
    view! {
        <a class="skip-link" href="#content">{words.common.skip_to_content}</a>
        <div class="frame" class:is-stale=is_stale>
            <header class="topbar">
                <Brand/>
                <div class="ml-auto flex items-center gap-2">
                    {living("connection", view! { <Connection/> }.erased())}
                    {living("search-small", view! { <SearchButton small=true/> }.erased())}
                    <details class="top-menu">
                        <summary aria-label=words.nav.menu><Icon glyph=Glyph::Menu/></summary>
                        <div class="top-menu-body">
                            {list(&prefs, |place| place.bar.is_none())}
                            <Foot/>
                        </div>
                    </details>
                </div>
            </header>
            <aside class="sidebar" aria-label=words.common.product>
                <Brand/>
                {living("search", view! { <SearchButton/> }.erased())}
                <nav aria-label=words.nav.main class="grow">
                    {list(&prefs, |place| place.group == Group::Main)}
                    {administers.then(|| view! {
                        <p class="nav-section" id="nav-admin">{words.nav.administration}</p>
                        <div role="group" aria-labelledby="nav-admin">
                            {list(&prefs, |place| place.group == Group::Administration)}
                        </div>
                    })}
                </nav>
                <div class="px-2 pb-2">{living("connection", view! { <Connection/> }.erased())}</div>
                <Foot/>
            </aside>
            <main id="content" class="content" tabindex="-1">
                {living("session", view! { <SessionOver/> }.erased())}
                <FlashBanner/>
                {activity}
                <Outlet/>
            </main>
            <nav class="tabbar" aria-label=words.nav.main>
                <ul>{places(&prefs).filter_map(|place| Some(item(place, place.bar?(words)))).collect_view()}</ul>
            </nav>
            {living("habits", view! { <Habits/> }.erased())}
        </div>
    }
    .erased()
}

/// What lives on every page: on a plain one its program finds the place by this name.
fn living(name: &'static str, inside: AnyView) -> AnyView {
    view! { <div class="contents" data-mount=name>{inside}</div> }.erased()
}

/// Links to those of the places that belong here.
fn list(prefs: &Prefs, here: impl Fn(&Place) -> bool) -> AnyView {
    let items = places(prefs).filter(|place| here(place)).map(|place| item(place, (place.label)(t())));
    view! { <ul class="nav-list">{items.collect_view()}</ul> }.erased()
}

fn item(place: &'static Place, label: &'static str) -> AnyView {
    let Place { href, glyph, live, .. } = place;
    let (href, glyph) = (*href, *glyph);
    let inside = view! { <Icon glyph=glyph/> <span>{label}</span> };
    let link = if *live {
        view! { <A href=href exact=href == "/" attr:class="nav-link">{inside}</A> }.erased()
    } else {
        // A plain page, which the browser has to load.
        let current = use_location().pathname.get_untracked().starts_with(href).then_some("page");
        view! { <a href=href rel="external" class="nav-link" aria-current=current>{inside}</a> }.erased()
    };
    view! { <li>{link}</li> }.erased()
}

/// The mark and the name.
#[component]
pub(crate) fn Brand() -> impl IntoView {
    view! {
        <a class="brand" href="/">
            <svg class="brand-mark" viewBox="0 0 24 24" aria-hidden="true">
                <path class="brand-bars" d="M4 4v16M9 8v12M14 12v8M19 15v5"></path>
                <path class="brand-needle" d="M4 4c4 8 8 11 16 12"></path>
            </svg>
            <span>{t().common.product}</span>
        </a>
    }
    .erased()
}

/// Account, what was said, how the pages look, and the version.
#[component]
fn Foot() -> impl IntoView {
    let words = &t().nav;
    let here = use_here();
    let session = use_context::<Prefs>().and_then(|prefs| prefs.session);
    let version = session.as_ref().map(|session| words.version.of(&session.server_version));
    let account = session.filter(|session| !session.single_user);
    view! {
        <div class="foot">
            {account.map(|session| {
                let name = format!("{}: {}", words.account, session.name);
                view! { <p class="foot-name"><a class="row-link" rel="external" href="/account" aria-label=name>{session.name}</a></p> <SignOut/> }
            })}
            {living("notes", view! { <NotesMenu/> }.erased())}
            <a class="nav-link" rel="external" href=move || format!("/preferences{}", query_string(&[("next", Some(here.get()))]))>
                <Icon glyph=Glyph::Gear/>
                {t().habits.preferences}
            </a>
            <ThemeSwitch/>
            {version.map(|version| view! { <p class="foot-version">{version}</p> })}
        </div>
    }
    .erased()
}
