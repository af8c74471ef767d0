//! The frame around every page but the login: navigation at the side, at the bottom of a small screen.

use leptos::prelude::*;
use leptos_router::components::{A, Outlet};
use leptos_router::hooks::use_location;

use super::action::SignOut;
use super::connection::Connection;
use super::flash_banner::FlashBanner;
use super::icon::{Glyph, Icon};
use super::language_switch::LanguageSwitch;
use super::theme_switch::ThemeSwitch;
use crate::domain::access::Permission;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// The frame; the page goes into its middle.
#[component]
pub(crate) fn Layout() -> impl IntoView {
    let words = t();
    let may = |permission| use_context::<Prefs>().is_some_and(|prefs| prefs.may(permission));
    let (submits, workers) = (may(Permission::JobSubmit), may(Permission::AdminWorkers));
    let accounts = use_context::<Prefs>().and_then(|prefs| prefs.session).is_some_and(|session| !session.single_user);
    let people = accounts && may(Permission::AdminUsers);
    view! {
        <a class="skip-link" href="#content">{words.common.skip_to_content}</a>
        <div class="frame">
            <header class="topbar">
                <Brand/>
                <div class="ml-auto flex items-center gap-2">
                    <Connection/>
                    <details class="top-menu">
                        <summary aria-label=words.nav.menu><Icon glyph=Glyph::Menu/></summary>
                        <div class="top-menu-body">
                            <ul class="nav-list">
                                {submits.then(|| view! { <PlainItem href="/secrets" glyph=Glyph::Key label=words.nav.secrets/> })}
                                {workers.then(|| view! { <NavItem href="/gpus" glyph=Glyph::Gpu label=words.gpus.title/> })}
                                {people.then(|| view! { <PlainItem href="/admin/users" glyph=Glyph::People label=words.nav.people/> })}
                            </ul>
                            <Foot/>
                        </div>
                    </details>
                </div>
            </header>
            <aside class="sidebar" aria-label=words.common.product>
                <Brand/>
                <nav aria-label=words.nav.main class="grow">
                    <ul class="nav-list">
                        <NavItem href="/" exact=true glyph=Glyph::Overview label=words.nav.overview/>
                        <NavItem href="/jobs" glyph=Glyph::Jobs label=words.nav.jobs/>
                        {submits.then(|| view! { <PlainItem href="/train" glyph=Glyph::Train label=words.nav.train/> })}
                        {submits.then(|| view! { <PlainItem href="/secrets" glyph=Glyph::Key label=words.nav.secrets/> })}
                    </ul>
                    {(workers || people).then(|| view! {
                        <p class="nav-section" id="nav-admin">{words.nav.administration}</p>
                        <ul class="nav-list" aria-labelledby="nav-admin">
                            {workers.then(|| view! { <NavItem href="/admin/workers" glyph=Glyph::Workers label=words.nav.workers/> })}
                            {workers.then(|| view! { <NavItem href="/gpus" glyph=Glyph::Gpu label=words.gpus.title/> })}
                            {people.then(|| view! { <PlainItem href="/admin/users" glyph=Glyph::People label=words.nav.people/> })}
                        </ul>
                    })}
                </nav>
                <div class="px-2 pb-2"><Connection/></div>
                <Foot/>
            </aside>
            <main id="content" class="content" tabindex="-1">
                <FlashBanner/>
                <Outlet/>
            </main>
            <nav class="tabbar" aria-label=words.nav.main>
                <ul>
                    <NavItem href="/" exact=true glyph=Glyph::Overview label=words.nav.overview/>
                    <NavItem href="/jobs" glyph=Glyph::Jobs label=words.nav.jobs/>
                    {submits.then(|| view! { <PlainItem href="/train" glyph=Glyph::Train label=words.nav.train_short/> })}
                    {workers.then(|| view! {
                        <NavItem href="/admin/workers" glyph=Glyph::Workers label=words.nav.workers/>
                    })}
                </ul>
            </nav>
        </div>
    }
    .erased()
}

#[component]
fn NavItem(href: &'static str, #[prop(optional)] exact: bool, glyph: Glyph, label: &'static str) -> impl IntoView {
    view! {
        <li>
            <A href=href exact=exact attr:class="nav-link">
                <Icon glyph=glyph/>
                <span>{label}</span>
            </A>
        </li>
    }
    .erased()
}

/// A plain page, which the browser has to load.
#[component]
fn PlainItem(href: &'static str, glyph: Glyph, label: &'static str) -> impl IntoView {
    let here = use_location().pathname.get_untracked().starts_with(href).then_some("page");
    view! {
        <li>
            <a href=href rel="external" class="nav-link" aria-current=here>
                <Icon glyph=glyph/>
                <span>{label}</span>
            </a>
        </li>
    }
    .erased()
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

/// Theme, account and version.
#[component]
fn Foot() -> impl IntoView {
    let words = &t().nav;
    let session = use_context::<Prefs>().and_then(|prefs| prefs.session);
    let version = session.as_ref().map(|session| words.version.of(&session.server_version));
    let account = session.filter(|session| !session.single_user);
    view! {
        <div class="foot">
            {account.map(|session| view! { <p class="foot-name"><a class="row-link" rel="external" href="/account" aria-label=words.account>{session.name}</a></p> <SignOut/> })}
            <ThemeSwitch/>
            <LanguageSwitch/>
            {version.map(|version| view! { <p class="foot-version">{version}</p> })}
        </div>
    }
    .erased()
}
