//! The layout of all pages except sign-in: navigation at the side, or at the bottom of a small screen.

use leptos::prelude::*;
use leptos_router::components::{A, Outlet};
use leptos_router::hooks::use_location;

use super::action::SignOut;
use super::connection::{Connection, SignedOutNotice};
use super::flash_banner::FlashBanner;
use super::icon::Icon;
use super::keyboard::GlobalShortcuts;
use super::palette::SearchButton;
use super::problem_panel::use_current_url;
use super::theme_switch::ThemeSwitch;
use super::toasts::NotificationsMenu;
use crate::protocol::access::SessionView;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::use_live;
use crate::ui::navigation::{NavGroup, NavPage, visible_pages};
use crate::ui::page_query::query_string;
use crate::ui::prefs::Prefs;

/// The layout, with the page in its [`Outlet`].
#[component]
pub(crate) fn Layout() -> impl IntoView {
    let words = t();
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let live = use_live();
    let is_stale = move || live.is_stale();
    let is_administrator = visible_pages(&prefs).any(|page| page.group == NavGroup::Administration);
    let account_name = account(&prefs).map_or_else(|| words.nav.menu.to_owned(), |session| session.name.clone());
    let unread = prefs.session.as_ref().is_some_and(|session| session.unread_notices > 0);
    let activity_notice = unread.then(|| {
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
                    {mount_point("connection", view! { <Connection/> }.into_erased())}
                    {mount_point("search-small", view! { <SearchButton small=true/> }.into_erased())}
                    <details class="top-menu">
                        <summary aria-label=words.nav.menu><Icon glyph=Glyph::Menu/></summary>
                        <div class="top-menu-body">
                            {nav_list(&prefs, |page| page.tab_bar_label.is_none() && page.group == NavGroup::Main)}
                            {is_administrator.then(|| view! {
                                <p class="nav-section">{words.nav.administration}</p>
                                {nav_list(&prefs, |page| page.group == NavGroup::Administration)}
                            })}
                            <div class="foot">
                                {account_menu(&prefs)}
                                {mount_point("notes", view! { <NotificationsMenu/> }.into_erased())}
                            </div>
                        </div>
                    </details>
                </div>
            </header>
            <aside class="sidebar" aria-label=words.common.product>
                <Brand/>
                {mount_point("search", view! { <SearchButton/> }.into_erased())}
                {action_link(&prefs)}
                <nav aria-label=words.nav.main class="grow">
                    {nav_list(&prefs, |page| page.group == NavGroup::Main)}
                    {is_administrator.then(|| view! {
                        <p class="nav-section" id="nav-admin">{words.nav.administration}</p>
                        <div role="group" aria-labelledby="nav-admin">
                            {nav_list(&prefs, |page| page.group == NavGroup::Administration)}
                        </div>
                    })}
                </nav>
                <div class="px-2 pb-2">{mount_point("connection", view! { <Connection/> }.into_erased())}</div>
                <div class="foot is-row">
                    <details class="account-menu">
                        <summary class="nav-link"><Icon glyph=Glyph::User/><span class="truncate">{account_name}</span></summary>
                        <div class="account-menu-body">{account_menu(&prefs)}</div>
                    </details>
                    {mount_point("notes", view! { <NotificationsMenu/> }.into_erased())}
                </div>
            </aside>
            <main id="content" class="content" tabindex="-1">
                {mount_point("session", view! { <SignedOutNotice/> }.into_erased())}
                <FlashBanner/>
                {activity_notice}
                <Outlet/>
            </main>
            <nav class="tabbar" aria-label=words.nav.main>
                <ul>{visible_pages(&prefs).filter_map(|page| Some(nav_item(page, page.tab_bar_label?(words)))).collect_view()}</ul>
            </nav>
            {mount_point("shortcuts", view! { <GlobalShortcuts/> }.into_erased())}
        </div>
    }
    .into_erased()
}

/// Wraps a part that is interactive on every page: on a server-rendered page, `browser::mount` finds it by `name`.
fn mount_point(name: &'static str, content: AnyView) -> AnyView {
    view! { <div class="contents" data-mount=name>{content}</div> }.into_erased()
}

/// Renders links to the visible pages for which `is_shown` returns true.
fn nav_list(prefs: &Prefs, is_shown: impl Fn(&NavPage) -> bool) -> AnyView {
    let items = visible_pages(prefs).filter(|page| is_shown(page)).map(|page| nav_item(page, (page.label)(t())));
    view! { <ul class="nav-list">{items.collect_view()}</ul> }.into_erased()
}

fn nav_item(page: &'static NavPage, label: &'static str) -> AnyView {
    let NavPage { href, glyph, is_client_rendered, .. } = page;
    let (href, glyph) = (*href, *glyph);
    let content = view! { <Icon glyph=glyph/> <span>{label}</span> };
    let link = if *is_client_rendered {
        view! { <A href=href exact=href == "/" attr:class="nav-link">{content}</A> }.into_erased()
    } else {
        // The router cannot navigate to a server-rendered page: the browser loads it.
        let current = use_location().pathname.get_untracked().starts_with(href).then_some("page");
        view! { <a href=href rel="external" class="nav-link" aria-current=current>{content}</a> }.into_erased()
    };
    view! { <li>{link}</li> }.into_erased()
}

/// The logo and the product name.
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
    .into_erased()
}

/// The session of a user with an account.
fn account(prefs: &Prefs) -> Option<&SessionView> {
    prefs.session.as_ref().filter(|session| !session.single_user)
}

/// The button above the navigation.
fn action_link(prefs: &Prefs) -> Option<AnyView> {
    let page = visible_pages(prefs).find(|page| page.group == NavGroup::Action)?;
    let NavPage { href, glyph, label, .. } = page;
    let (href, glyph) = (*href, *glyph);
    let current = use_location().pathname.get_untracked().starts_with(href).then_some("page");
    Some(
        view! {
            <a class="btn btn-sm sidebar-action" href=href rel="external" aria-current=current>
                <Icon glyph=glyph/>
                {label(t())}
            </a>
        }
        .into_erased(),
    )
}

/// The user's own pages, the theme switch, the version, and the button to sign out.
fn account_menu(prefs: &Prefs) -> AnyView {
    let words = &t().nav;
    let current_url = use_current_url();
    let version = prefs.session.as_ref().map(|session| words.version.of(&session.server_version));
    let account = account(prefs).map(|session| {
        let name = format!("{}: {}", words.account, session.name);
        view! { <a class="nav-link" rel="external" href="/account" aria-label=name><Icon glyph=Glyph::User/>{words.account}</a> }
    });
    let sign_out = account.is_some().then(|| view! { <SignOut/> });
    view! {
        {account}
        {nav_list(prefs, |page| page.group == NavGroup::Account)}
        <a class="nav-link" rel="external" href=move || format!("/preferences{}", query_string(&[("next", Some(current_url.get()))]))>
            <Icon glyph=Glyph::Gear/>
            {t().shell.preferences}
        </a>
        {sign_out}
        <ThemeSwitch/>
        {version.map(|version| view! { <p class="foot-version">{version}</p> })}
    }
    .into_erased()
}
