//! The files of a job as a table.

use leptos::prelude::*;

use super::copy::CopyButton;
use super::icon::Icon;
use super::time::RelativeTime;
use crate::protocol::artifacts::ArtifactView;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::safe_url::SafeUrl;

/// Files with their sizes, digests and download links.
#[component]
pub(crate) fn FileTable(#[prop(into)] caption: String, files: Vec<ArtifactView>) -> impl IntoView {
    let words = &t().job;
    let rows = files.into_iter().map(|file| view! { <FileRow file=file/> }).collect_view();
    view! {
        <table class="data">
            <caption class="sr-only">{caption}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.file}</th>
                    <th scope="col" class="num">{words.size}</th>
                    <th scope="col" class="max-lg:hidden">{words.sha256}</th>
                    <th scope="col" class="max-md:hidden">{words.arrived}</th>
                    <th scope="col"><span class="sr-only">{words.file}</span></th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_erased()
}

#[component]
fn FileRow(file: ArtifactView) -> impl IntoView {
    let words = t();
    let short: String = file.sha256.chars().take(12).collect();
    let href = SafeUrl::from_data(&file.url).into_string();
    let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
    view! {
        <tr>
            <th scope="row"><bdi class="font-mono text-[13px] font-normal break-all">{file.path.clone()}</bdi></th>
            <td class="num">{t().format_bytes(file.size_bytes)}</td>
            <td class="max-lg:hidden">
                <span class="inline-flex items-center gap-1 font-mono text-xs text-muted" title=file.sha256.clone()>
                    {short}"…"
                    <CopyButton text=file.sha256.clone() label=words.job.sha256/>
                </span>
            </td>
            <td class="text-muted max-md:hidden"><RelativeTime at=file.created_at/></td>
            <td class="num">
                <a class="icon-button" href=href download=name.clone() rel="external" aria-label=words.common.download.of(&file.path)>
                    <Icon glyph=Glyph::Download/>
                </a>
            </td>
        </tr>
    }
    .into_erased()
}
