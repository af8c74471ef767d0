//! Confirms that a configuration is to be deleted: a page of its own, so that it works without JavaScript.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::protocol::configs::{ConfigDetail, RevisionsPage};
use crate::protocol::percent_encoding;
use crate::protocol::problem::Problem;
use crate::ui::backend::use_page_backend;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::format::config_url;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

#[component]
pub(crate) fn ConfigDeletePage() -> impl IntoView {
    // The router would decode it a second time.
    let path = use_location().pathname.get_untracked();
    let name = percent_encoding::decode(path.trim_end_matches("/delete").rsplit('/').next().unwrap_or_default());
    let page_backend = use_page_backend();
    let shown = {
        let name = name.clone();
        move || {
            let (page_backend, name) = (page_backend.clone(), name.clone());
            Suspend::new(async move {
                let found = async {
                    let newest = page_backend.editable_config(Some(name.clone())).await?;
                    Ok::<_, Problem>((newest, page_backend.revisions(name).await?))
                };
                match found.await {
                    Ok((newest, page)) => {
                        newest.map(|newest| view! { <DeleteConfirmation newest=newest page=page/> }).into_erased()
                    }
                    Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
                }
            })
        }
    };
    let above = (config_url(&name), name.clone());
    view! {
        <PageHeader title=t().server_pages().configs.delete_title.of(&name) above=above/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn DeleteConfirmation(newest: ConfigDetail, page: RevisionsPage) -> impl IntoView {
    let words = &t().server_pages().configs;
    let config = newest.config;
    let may_delete = use_context::<Prefs>().is_some_and(|prefs| prefs.can_change_config(config.owner.as_deref()));
    let not_yours = (!may_delete).then(|| {
        view! { <div class="notice notice-warn mb-0"><Icon glyph=Glyph::Warning/><p id="why">{words.delete_not_yours}</p></div> }
    });
    let active: u64 = page.revisions.iter().map(|revision| revision.active_jobs).sum();
    let address = config_url(&config.name);
    let action = format!("/ui{address}/delete");
    view! {
        <div class="panel form">
            <p>{words.delete_text}</p>
            {not_yours}
            {(active > 0 && may_delete).then(|| view! {
                <div class="notice notice-warn mb-0"><Icon glyph=Glyph::Warning/><p>{words.delete_active.of(active)}</p></div>
            })}
            <form method="post" action=action class="form-actions">
                <input type="hidden" name="revision" value=config.revision.to_string()/>
                <button class="btn btn-error" disabled=!may_delete aria-describedby=(!may_delete).then_some("why")><Icon glyph=Glyph::Trash/>{words.delete_confirm}</button>
                <a class="btn btn-ghost" href=address>{t().common.cancel}</a>
            </form>
        </div>
    }
    .into_erased()
}
