//! The files that a job made.

use std::cmp::Reverse;

use leptos::prelude::*;

use super::copy::CopyButton;
use super::icon::{Glyph, Icon};
use super::status::kind_word;
use super::time::Moment;
use crate::protocol::queue::ArtifactView;
use crate::protocol::status::ArtifactKind;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::safe_url::SafeUrl;

/// A table of files: the final weights first, then the newest.
#[component]
pub(crate) fn Artifacts(#[prop(into)] artifacts: Signal<Vec<ArtifactView>>) -> impl IntoView {
    let words = &t().job;
    let sorted = move || {
        let mut files = artifacts.get();
        files.sort_by_key(|file| (rank(file.kind), Reverse(file.created_at)));
        files
    };
    let total = move || {
        artifacts.with(|files| {
            let size = files.iter().map(|file| file.size_bytes).sum();
            words.files.with(files.len() as u64, &t().bytes(size))
        })
    };
    view! {
        <section class="panel" aria-labelledby="files">
            <h2 id="files" class="panel-head">
                {words.artifacts}
                <span class="panel-note">{move || (!artifacts.with(Vec::is_empty)).then(total)}</span>
            </h2>
            {move || {
                if artifacts.with(Vec::is_empty) {
                    view! { <p class="panel-empty">{words.no_artifacts}</p> }.erased()
                } else {
                    let rows = sorted().into_iter().map(|file| view! { <FileRow file=file/> }).collect_view();
                    view! {
                        <table class="data">
                            <caption class="sr-only">{words.artifacts_caption}</caption>
                            <thead>
                                <tr>
                                    <th scope="col">{words.file}</th>
                                    <th scope="col" class="max-md:hidden">{words.kind}</th>
                                    <th scope="col" class="num">{words.size}</th>
                                    <th scope="col" class="max-lg:hidden">{words.sha256}</th>
                                    <th scope="col" class="max-md:hidden">{words.arrived}</th>
                                    <th scope="col"><span class="sr-only">{words.file}</span></th>
                                </tr>
                            </thead>
                            <tbody>{rows}</tbody>
                        </table>
                    }
                    .erased()
                }
            }}
        </section>
    }
    .erased()
}

/// What people come for stands first.
const fn rank(kind: ArtifactKind) -> u8 {
    match kind {
        ArtifactKind::Final => 0,
        ArtifactKind::Checkpoint => 1,
        ArtifactKind::Sample => 2,
        ArtifactKind::Other => 3,
    }
}

#[component]
fn FileRow(file: ArtifactView) -> impl IntoView {
    let words = t();
    let short: String = file.sha256.chars().take(12).collect();
    let href = SafeUrl::from_data(&file.url).into_string();
    let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
    view! {
        <tr>
            <th scope="row"><span class="font-mono text-[13px] font-normal break-all">{file.path.clone()}</span></th>
            <td class="max-md:hidden"><span class="chip">{kind_word(&words.status, file.kind)}</span></td>
            <td class="num">{t().bytes(file.size_bytes)}</td>
            <td class="max-lg:hidden">
                <span class="inline-flex items-center gap-1 font-mono text-xs text-muted" title=file.sha256.clone()>
                    {short}"…"
                    <CopyButton text=file.sha256.clone() label=words.job.sha256/>
                </span>
            </td>
            <td class="text-muted max-md:hidden"><Moment at=file.created_at/></td>
            <td class="num">
                <a class="icon-button" href=href download=name.clone() rel="external" aria-label=words.common.download.of(&file.path)>
                    <Icon glyph=Glyph::Download/>
                </a>
            </td>
        </tr>
    }
    .erased()
}
