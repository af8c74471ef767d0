//! The program of a plain page: what every page has (keys, search, notes, ticking ages, whether it is current) comes to life
//! around what the server made, and that is fetched anew when something is on record.

use std::rc::Rc;
use std::sync::Arc;

use leptos::prelude::*;
use web_sys::Document;

use super::boot::Boot;
use super::browser;
use super::client;
use super::clock::{Clock, use_clock};
use super::components::connection::{Connection, SessionOver};
use super::components::failure::Here;
use super::components::flash_banner::remember;
use super::components::keyboard::Habits;
use super::components::palette::SearchButton;
use super::components::toasts::NotesMenu;
use super::flash::CurrentFlash;
use super::i18n::t;
use super::live::{on_news, use_live};
use super::port::SharedPort;
use super::prefs::Prefs;
use crate::domain::access::Permission;
use crate::protocol::topic::Topic;

/// Attends to the page that is open.
pub(crate) fn attend() {
    browser::help();
    let Some(boot) = browser::boot().and_then(|boot| serde_json::from_str::<Boot>(&boot).ok()) else { return };
    browser::mount("habits", move || {
        boot.clone().provide();
        provide_context::<SharedPort>(Arc::new(client::Rest));
        provide_context(Here(browser::address()));
        if let Some(CurrentFlash(flash)) = use_context() {
            remember(flash);
        }
        browser::mount("search", || view! { <SearchButton/> }.into_any());
        browser::mount("search-small", || view! { <SearchButton small=true/> }.into_any());
        browser::mount("connection", || view! { <Connection/> }.into_any());
        browser::mount("session", || view! { <SessionOver/> }.into_any());
        browser::mount("notes", || view! { <NotesMenu/> }.into_any());
        keep_current();
        view! { <Habits/> }.into_any()
    });
}

/// Ages tick; parts are fetched anew, and are pale while nobody knows whether they are.
fn keep_current() {
    let (clock, live) = (use_clock(), use_live());
    Effect::new(move |_| tell(clock, &document()));
    Effect::new(move |_| browser::mark_stale(live.is_stale()));
    if browser::has_parts() {
        let renewal = Rc::new(browser::Renewal::new(move |page: &Document| untrack(|| tell(clock, page))));
        on_news(topics(), Box::new(move || Box::pin(renewal.clone().renew())));
    }
}

/// What may change a page: the trail has all of it, and who may not read the trail hears of what they may see.
fn topics() -> &'static [Topic] {
    let reads_trail = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::AdminAudit));
    if reads_trail {
        &[Topic::Trail]
    } else {
        &[Topic::Account, Topic::Configs, Topic::Jobs, Topic::Secrets, Topic::Workers]
    }
}

/// Says every moment on a page as it is said now.
fn tell(clock: Clock, page: &Document) {
    let now = clock.now();
    browser::tell_moments(page, |at| (t().ago(at, now), clock.moment(at)));
}
