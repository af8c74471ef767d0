//! `/metrics`: what is measured, for Prometheus.
//!
//! It takes the permission `ops.metrics`, also from the server's own machine: a reverse proxy there asks from loopback
//! for whoever asks the proxy. The listener of `--metrics-addr` takes none.

use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::openapi::doc::{Answer, Content, Doc};
use crate::metrics::Metrics;
use crate::metrics::page::{CONTENT_TYPE, Labels, Page};
use crate::process;
use crate::service::Core;
use crate::service::measure::Measured;
use crate::state::App;

/// See [`metrics`].
pub const METRICS: Doc = Doc {
    answers: &[Answer::with(200, "The figures, in the format of OpenMetrics.", Content::Bytes(&[CONTENT_TYPE]))],
    ..Doc::of("getMetrics", "Tells how the server does, for Prometheus.")
};

/// `GET /metrics`
pub async fn metrics(State(app): State<App>) -> Response {
    page(&app).await
}

async fn page(app: &App) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")], text(app).await).into_response()
}

/// The figures of this moment.
pub async fn text(app: &App) -> String {
    let mut page = Page::default();
    // Without the database there is still much to tell.
    match app.core.measured().await {
        Ok(measured) => fleet(&mut page, &measured),
        Err(refusal) => tracing::warn!(?refusal, "the fleet was not measured"),
    }
    connections(&mut page, &app.core);
    counted(&mut page, &app.core.metrics);
    requests(&mut page, &app.core.metrics);
    host(&mut page, &app.core);
    page.text()
}

fn fleet(page: &mut Page, measured: &Measured) {
    let workers = measured.workers.iter().map(|(status, number)| (label("state", status.as_str()), real(*number)));
    page.gauges("workers", "Workers by state.", workers);
    let gpus = measured.gpus.iter().map(|(state, number)| (label("state", state.as_str()), real(*number)));
    page.gauges("gpus", "GPUs of connected workers, by state; one that is withheld counts as that.", gpus);
    let jobs = measured.jobs.iter().map(|(status, number)| (label("state", status.as_str()), real(*number)));
    page.gauges("jobs", "Jobs that have not ended, by state.", jobs);
    page.gauge(
        "queue_oldest_seconds",
        "How long the longest waiting job has waited since its submit; 0 if none waits.",
        seconds(measured.oldest_waits.0),
    );
    page.gauge(
        "tls_unverified_workers",
        "Connected workers whose agent does not verify this server's certificate.",
        real(measured.unverified),
    );
    page.gauge(
        "heartbeat_age_seconds_max",
        "How long the most silent of the connected workers was not heard of.",
        seconds(measured.longest_silence.0),
    );
    page.gauge("audit_entries", "Entries of the audit trail.", real(measured.audit_entries));
}

fn connections(page: &mut Page, core: &Core) {
    let open = core.hub.open();
    let streams = [("workers", open.workers), ("browsers", open.listeners)];
    let streams = streams.map(|(of, number)| (label("of", of), real(number as u64)));
    page.gauges("open_streams", "Event streams that are open on this server.", streams);
    let leads = core.leadership.held_since().is_some();
    page.gauge("leader", "Whether this server leads: 1 or 0.", real(u64::from(leads)));
}

fn counted(page: &mut Page, metrics: &Metrics) {
    page.histogram(
        "dispatch_offer_seconds",
        "From a job's submit until its first offer was committed.",
        metrics.dispatch.to_offer.counted(),
    );
    page.histogram(
        "dispatch_accept_seconds",
        "From an offer until a worker's acceptance was committed.",
        metrics.dispatch.to_acceptance.counted(),
    );
    page.histogram(
        "heartbeat_interval_seconds",
        "How long workers were silent between two signs of life.",
        metrics.silence.counted(),
    );
    page.histogram("commit_seconds", "How long a group took to commit.", metrics.commits.times.counted());
    page.histogram("commit_group_size", "Use cases that were committed together.", metrics.commits.sizes.counted());
    let undone = metrics.commits.undone.load(Relaxed);
    page.counters("commit_rollbacks", "Groups that were rolled back.", [(Labels::new(), undone)]);
    let (lines, failures) = (&metrics.shipping.lines, &metrics.shipping.failures);
    page.counters(
        "audit_shipped_lines",
        "Signed checkpoints that were sent elsewhere.",
        [(Labels::new(), lines.load(Relaxed))],
    );
    page.counters("audit_ship_failures", "Tries to send them that failed.", [(Labels::new(), failures.load(Relaxed))]);
    let failing = u64::from(metrics.shipping.failing_since().is_some());
    page.gauge("audit_ship_failing", "Whether the last try to send them failed: 1 or 0.", real(failing));
    let loops = metrics.loops.all();
    let each = |value: fn(&crate::metrics::loops::Passes) -> u64| -> Vec<_> {
        loops.iter().map(|(name, passes)| (label("loop", name), value(passes))).collect()
    };
    page.counters("loop_passes", "Passes of each reconciler.", each(|passes| passes.number.load(Relaxed)));
    page.counters("loop_failures", "Passes that failed.", each(|passes| passes.failed.load(Relaxed)));
    let last = loops.iter().map(|(name, passes)| (label("loop", name), seconds(passes.last_at.load(Relaxed))));
    page.gauges("loop_last_run_timestamp_seconds", "When the last pass ended, since 1970.", last);
    let took = loops.iter().map(|(name, passes)| (label("loop", name), real(passes.last_took.load(Relaxed)) / 1e6));
    page.gauges("loop_last_duration_seconds", "How long the last pass took.", took);
}

fn requests(page: &mut Page, metrics: &Metrics) {
    let routes = metrics.http.routes();
    let answers = routes.iter().flat_map(|(route, counts)| {
        let used = counts.answers().filter(|(_, number)| *number > 0);
        used.map(|(class, number)| (vec![("route", route.clone()), ("status", class.to_owned())], number))
    });
    page.counters("http_requests", "Requests by route and class of status.", answers);
    let times = routes.iter().map(|(route, counts)| (label("route", route), counts.times.counted()));
    page.histograms("http_request_seconds", "How long it took until an answer began.", times);
    let (workers, people) = (&metrics.refused.of_workers, &metrics.refused.of_people);
    page.counters(
        "unauthenticated_requests",
        "Requests that came without a token that opens anything.",
        [(label("of", "workers"), workers.load(Relaxed)), (label("of", "people"), people.load(Relaxed))],
    );
    let refused = metrics.refused.recorded().map(|(kind, number)| (label("kind", kind.as_str()), number));
    page.counters("refusals", "Logins, registrations and requests that were refused for who asked.", refused);
}

fn host(page: &mut Page, core: &Core) {
    if let Some(space) = core.room.space() {
        page.gauge("disk_free_bytes", "Free space on the data directory's disk.", real(space.free));
        page.gauge("disk_size_bytes", "Size of that disk.", real(space.total));
        page.gauge("disk_floor_bytes", "Below so much free space no new jobs are taken.", real(core.room.floor()));
        let full = u64::from(core.room.is_full());
        page.gauge("disk_full", "Whether no new jobs are taken for want of space: 1 or 0.", real(full));
    }
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    page.gauges("build_info", "The version that runs.", [(version, 1.0)]);
    let started = core.metrics.started_at;
    page.gauge("process_start_time_seconds", "When this process started, since 1970.", seconds(started.0));
    page.gauge("uptime_seconds", "Since when it runs.", seconds((core.now() - started).0));
    if let Some(used) = process::used() {
        page.gauge("process_resident_memory_bytes", "Memory that this process takes.", real(used.memory));
        page.gauge("process_open_fds", "Files and sockets that it has open.", real(used.files));
        page.gauge("process_max_fds", "How many it may have open.", real(used.most_files));
    }
}

fn label(name: &'static str, value: &str) -> Labels {
    vec![(name, value.to_owned())]
}

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 may be off by one")]
fn real(number: u64) -> f64 {
    number as f64
}

/// Of milliseconds.
#[expect(clippy::cast_precision_loss, reason = "moments in milliseconds are far below 2^53")]
fn seconds(millis: i64) -> f64 {
    millis as f64 / 1_000.0
}
