//! The GPUs of a worker as a table: what they are, who has them, and how they were last.

use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use super::scale::Scale;
use super::status::{Look, Status};
use super::time::Moment;
use crate::protocol::gpu::{GpuView, WithheldReason};
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::words::gpus::Gpus;
use crate::ui::{format, readings};

/// What a row is made of.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    gpu: GpuView,
    /// The name of the job that holds it.
    job: Option<String>,
    connected: bool,
}

fn rows(worker: &WorkerView) -> Vec<Row> {
    let name = |gpu: &GpuView| {
        let held = worker.jobs.iter().find(|job| Some(&job.job_id) == gpu.job_id.as_ref());
        held.map(|job| job.config_name.clone())
    };
    let connected = worker.status != WorkerStatus::Offline;
    worker.gpus.iter().map(|gpu| Row { gpu: gpu.clone(), job: name(gpu), connected }).collect()
}

/// Where a GPU stands. That it is withheld comes first: the job that has it still is named beside it.
fn look(words: &Gpus, row: &Row) -> Look {
    let withheld = row.gpu.gpu.withheld.as_ref().map(|withheld| withheld.reason);
    let (class, glyph, word) = match (row.connected, withheld, &row.gpu.job_id) {
        (false, _, _) => ("status status-off", Glyph::Dotted, words.not_connected),
        (true, Some(WithheldReason::Quarantined), _) => ("status status-bad", Glyph::Warning, words.quarantined),
        (true, Some(WithheldReason::InUse), _) => ("status status-warn", Glyph::StopCircle, words.in_use),
        (true, None, Some(_)) => ("status status-active", Glyph::Play, words.busy),
        (true, None, None) => ("status status-good", Glyph::Filled, words.free),
    };
    Look { class, glyph, word }
}

/// A table of a worker's GPUs that follows its signal; nothing, if it has none.
#[component]
pub(crate) fn GpuTable(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().gpus;
    let rows = Memo::new(move |_| worker.with(rows));
    let shown = move || {
        let rows = rows.get();
        let table = (!rows.is_empty()).then(|| {
            view! {
                <section class="panel" aria-labelledby="gpus">
                    <h2 id="gpus" class="panel-head">{words.title}</h2>
                    <table class="data gpus">
                        <caption class="sr-only">{words.title}</caption>
                        <thead>
                            <tr>
                                <th scope="col">{words.gpu}</th>
                                <th scope="col">{words.state}</th>
                                <th scope="col">{words.memory}</th>
                                <th scope="col" class="max-md:hidden">{words.utilisation}</th>
                                <th scope="col" class="num max-md:hidden">{words.temperature}</th>
                                <th scope="col" class="num max-lg:hidden">{words.power}</th>
                                <th scope="col" class="num max-xl:hidden">{words.clocks}</th>
                                <th scope="col" class="num max-md:hidden">{words.read}</th>
                            </tr>
                        </thead>
                        <tbody>{rows.into_iter().map(|row| view! { <GpuRow row=row/> }).collect_view()}</tbody>
                    </table>
                </section>
            }
        });
        table.erased()
    };
    view! { {shown} }.erased()
}

#[component]
fn GpuRow(row: Row) -> impl IntoView {
    let words = &t().gpus;
    let look = look(words, &row);
    let Row { gpu: shown, job, .. } = row;
    let reading = shown.reading.clone().unwrap_or_default();
    let name = format!("{}\u{a0}· {}", shown.gpu.index, shown.gpu.name);
    let kind = match (&shown.gpu.part_of, readings::is_unified(&shown)) {
        (Some(whole), _) => Some(words.part_of.of(whole)),
        (None, true) => Some(words.unified.to_owned()),
        (None, false) => None,
    };
    let why = shown.gpu.withheld.as_ref().map(|withheld| withheld.detail.clone()).filter(|why| !why.is_empty());
    let job = shown.job_id.as_ref().map(|id| {
        let name = job.unwrap_or_else(|| format::short_id(id.as_str()));
        view! { <a class="quiet-link row-sub" href=format!("/jobs/{id}")>{name}</a> }
    });
    let read = match &shown.reading {
        Some(reading) => view! { <Moment at=reading.at/> }.erased(),
        None => view! { <span>{words.no_reading}</span> }.erased(),
    };
    let percent = |percent: Option<f64>| percent.map_or_else(|| "–".to_owned(), |percent| t().percent(percent));
    let bar = |percent: Option<f64>, label: String| {
        percent.map(|percent| view! { <Scale percent=Some(percent) label=label/> })
    };
    view! {
        <tr>
            <th scope="row" title=shown.gpu.uuid.clone()>
                {name.clone()}
                {kind.map(|kind| view! { <span class="row-sub">{kind}</span> })}
            </th>
            <td>
                <Status look=look/>
                {why.map(|why| view! { <span class="row-sub wrap-anywhere">{why}</span> })}
                {job}
            </td>
            <td>
                <span class="whitespace-nowrap tabular-nums">{readings::memory(&shown)}</span>
                {bar(readings::memory_percent(&shown), words.memory_of.of(&name))}
                <span class="row-sub md:hidden">{percent(reading.utilization_percent)} " · " {readings::temperature(&reading)}</span>
            </td>
            <td class="max-md:hidden">
                <span class="tabular-nums">{percent(reading.utilization_percent)}</span>
                {bar(reading.utilization_percent, words.utilisation_of.of(&name))}
            </td>
            <td class="num max-md:hidden">{readings::temperature(&reading)}</td>
            <td class="num max-lg:hidden">{readings::power(&reading)}</td>
            <td class="num max-xl:hidden">{readings::clocks(&reading)}</td>
            <td class="num text-muted max-md:hidden">{read}</td>
        </tr>
    }
    .erased()
}

/// Beside a worker's status: that some of its GPUs are withheld.
#[component]
pub(crate) fn WithheldBadge(worker: WorkerView) -> impl IntoView {
    let some = worker.gpus_withheld > 0 && worker.status != WorkerStatus::Offline;
    let badge = some.then(|| {
        view! {
            <span class="status status-warn" title=t().gpus.withheld_hint>
                <Icon glyph=Glyph::Gpu/>
                <span>{t().gpus.withheld.of(u64::from(worker.gpus_withheld))}</span>
            </span>
        }
    });
    badge.erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::JobId;
    use crate::domain::time::Timestamp;
    use crate::protocol::gpu::{Gpu, Withheld};
    use crate::ui::locales::Language;
    use crate::ui::prefs::Locale;

    #[test]
    fn each_state_has_a_word_of_its_own() {
        let row = |reason: Option<WithheldReason>, is_held: bool| {
            let withheld = reason.map(|reason| Withheld { reason, detail: String::new() });
            let job_id = is_held.then(|| JobId::new(Timestamp(0), [0; 10]));
            Row {
                gpu: GpuView { gpu: Gpu { withheld, ..Gpu::default() }, job_id, reading: None },
                job: None,
                connected: true,
            }
        };
        let word = |row: &Row| look(&Language::of(Locale::En).gpus, row).word;
        let (quarantined, in_use) =
            (row(Some(WithheldReason::Quarantined), true), row(Some(WithheldReason::InUse), false));
        let rows = [
            (quarantined.clone(), "Quarantined"),
            (in_use, "In use by others"),
            (row(None, true), "With a job"),
            (row(None, false), "Free"),
            (Row { connected: false, ..quarantined }, "Not connected"),
        ];
        for (row, expected) in rows {
            assert_eq!(word(&row), expected);
        }
    }
}
