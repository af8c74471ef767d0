//! The script of server-rendered pages: mounts the shared interactive parts (shortcuts, search, notifications, relative
//! times, connection state) into the server's HTML, and refreshes parts of it when data changes.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use web_sys::Document;

use super::backend::SharedBackend;
use super::boot::Boot;
use super::browser;
use super::clock::{PageClock, use_clock};
use super::components::connection::{Connection, SignedOutNotice};
use super::components::flash_banner::record_flash;
use super::components::keyboard::GlobalShortcuts;
use super::components::palette::SearchButton;
use super::components::problem_panel::CurrentUrl;
use super::components::toasts::NotificationsMenu;
use super::config_editor;
use super::flash::CurrentFlash;
use super::http_backend;
use super::i18n::t;
use super::live::{on_change, use_live};
use super::prefs::Prefs;
use crate::domain::access::Permission;
use crate::protocol::topic::Topic;

/// Enhances the current page.
pub(crate) fn enhance() {
    browser::attach_interactions();
    config_editor::attach_if_present();
    let Some(boot) = browser::boot_json().and_then(|boot| serde_json::from_str::<Boot>(&boot).ok()) else { return };
    browser::mount("shortcuts", move || {
        boot.clone().provide();
        provide_context::<SharedBackend>(Arc::new(http_backend::HttpBackend));
        provide_context(CurrentUrl(browser::path_and_query()));
        if let Some(CurrentFlash(flash)) = use_context() {
            record_flash(flash);
        }
        browser::mount("search", || view! { <SearchButton/> }.into_any());
        browser::mount("search-small", || view! { <SearchButton small=true/> }.into_any());
        browser::mount("connection", || view! { <Connection/> }.into_any());
        browser::mount("session", || view! { <SignedOutNotice/> }.into_any());
        browser::mount("notes", || view! { <NotificationsMenu/> }.into_any());
        start_live_refresh();
        view! { <GlobalShortcuts/> }.into_any()
    });
}

/// Updates relative times, marks stale content, and refreshes fragments when data changes.
fn start_live_refresh() {
    let (clock, live) = (use_clock(), use_live());
    Effect::new(move |_| refresh_timestamps(clock, &document()));
    Effect::new(move |_| browser::mark_stale(live.is_stale()));
    if browser::has_fragments() {
        let refresher = Rc::new(browser::FragmentRefresher::new(move |page: &Document| {
            untrack(|| refresh_timestamps(clock, page));
        }));
        on_change(page_topics(), Duration::ZERO, Box::new(move || Box::pin(refresher.clone().refresh())));
    }
}

/// Returns the topics that can change a page: the audit log covers everything; users without access to it get the
/// topics that they may view.
fn page_topics() -> &'static [Topic] {
    let reads_audit_log = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::AdminAudit));
    if reads_audit_log {
        &[Topic::AuditLog]
    } else {
        &[Topic::Account, Topic::Configs, Topic::Jobs, Topic::Secrets, Topic::Workers]
    }
}

/// Updates all times on a page.
fn refresh_timestamps(clock: PageClock, page: &Document) {
    let now = clock.now();
    browser::update_timestamps(page, |at| (t().format_ago(at, now), clock.format_timestamp(at)));
}
