//! `/metrics` for Prometheus.
//!
//! It requires the permission `ops.metrics`, also from the server's own host: requests of a reverse proxy on that host
//! come from loopback. The listener of `--metrics-addr` requires none.

use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc};
use crate::http::state::AppState;
use crate::metrics::Metrics;
use crate::metrics::page::{CONTENT_TYPE, MetricLabels, MetricsPage, PLAIN_CONTENT_TYPE};
use crate::process;
use crate::service::Services;
use crate::service::system::fleet_metrics::FleetMetrics;

pub const METRICS: OperationDoc = OperationDoc {
    description: "In the format of OpenMetrics; in the older text format of Prometheus, if `Accept` names `text/plain` and not OpenMetrics.",
    responses: &[ResponseDoc::new(200, "The metrics.", ContentDoc::Bytes(&[CONTENT_TYPE, PLAIN_CONTENT_TYPE]))],
    ..OperationDoc::new("getMetrics", "Returns metrics for Prometheus.")
};

/// `GET /metrics`
pub async fn metrics(State(app): State<AppState>, headers: HeaderMap) -> Response {
    let page = build_page(&app).await;
    let (content_type, text) =
        if wants_plain(&headers) { (PLAIN_CONTENT_TYPE, page.render_plain()) } else { (CONTENT_TYPE, page.render()) };
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")], text).into_response()
}

/// Returns whether the client accepts the older text format only.
fn wants_plain(headers: &HeaderMap) -> bool {
    let accepted: Vec<_> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let accepts = |media_type| accepted.iter().any(|value| value.contains(media_type));
    accepts("text/plain") && !accepts("application/openmetrics-text")
}

/// Returns the current metrics in `OpenMetrics` format.
pub async fn render(app: &AppState) -> String {
    build_page(app).await.render()
}

async fn build_page(app: &AppState) -> MetricsPage {
    let mut page = MetricsPage::default();
    // The other metrics are available without the database.
    match app.services.system.fleet_metrics().await {
        Ok(measured) => add_fleet(&mut page, &measured),
        Err(error) => tracing::warn!(?error, "metrics: fleet metrics unavailable"),
    }
    add_connections(&mut page, &app.services);
    add_counters(&mut page, &app.services.context.metrics);
    add_requests(&mut page, &app.services.context.metrics);
    add_host(&mut page, &app.services);
    page
}

fn add_fleet(page: &mut MetricsPage, measured: &FleetMetrics) {
    let workers =
        measured.workers.iter().map(|(status, number)| (single_label("state", status.as_str()), to_f64(*number)));
    page.gauges("workers", "Workers by state.", workers);
    let gpus = measured.gpus.iter().map(|(state, number)| (single_label("state", state.as_str()), to_f64(*number)));
    page.gauges("gpus", "GPUs of connected workers, by state; an unavailable one counts by its reason.", gpus);
    let jobs = measured.jobs.iter().map(|(status, number)| (single_label("state", status.as_str()), to_f64(*number)));
    page.gauges("jobs", "Jobs that have not ended, by state.", jobs);
    page.gauge(
        "queue_oldest_seconds",
        "Age of the oldest queued job since its submit; 0 if none is queued.",
        seconds(measured.oldest_queued_age.0),
    );
    page.gauge(
        "tls_unverified_workers",
        "Connected workers whose agent does not verify this server's certificate.",
        to_f64(measured.unverified_agents),
    );
    page.gauge(
        "heartbeat_age_seconds_max",
        "Longest time since the last contact of a connected worker.",
        seconds(measured.longest_silence.0),
    );
    page.gauge("audit_entries", "Entries of the audit log.", to_f64(measured.audit_entries));
}

fn add_connections(page: &mut MetricsPage, services: &Services) {
    let open = services.context.notifier.stream_counts();
    let streams = [("workers", open.workers), ("browsers", open.listeners)];
    let streams = streams.map(|(client, number)| (single_label("of", client), to_f64(number as u64)));
    page.gauges("open_streams", "Open event streams of this server.", streams);
    let is_leader = services.context.leadership.held_since().is_some();
    page.gauge("leader", "Whether this server is the leader: 1 or 0.", to_f64(u64::from(is_leader)));
}

fn add_counters(page: &mut MetricsPage, metrics: &Metrics) {
    page.histogram(
        "dispatch_offer_seconds",
        "Time from a job's submit to the commit of its first offer.",
        metrics.dispatch.to_offer.snapshot(),
    );
    page.histogram(
        "dispatch_accept_seconds",
        "Time from an offer to the commit of its acceptance.",
        metrics.dispatch.to_acceptance.snapshot(),
    );
    page.histogram(
        "heartbeat_interval_seconds",
        "Time between two contacts of a worker.",
        metrics.heartbeat_interval.snapshot(),
    );
    page.histogram("commit_seconds", "Duration of a group commit.", metrics.commits.latency.snapshot());
    page.histogram("commit_group_size", "Use cases per group commit.", metrics.commits.sizes.snapshot());
    let rolled_back = metrics.commits.rolled_back.load(Relaxed);
    page.counters("commit_rollbacks", "Group commits that were rolled back.", [(MetricLabels::new(), rolled_back)]);
    let (lines, failures) = (&metrics.shipping.lines, &metrics.shipping.failures);
    page.counters(
        "audit_shipped_lines",
        "Signed audit checkpoints that were shipped.",
        [(MetricLabels::new(), lines.load(Relaxed))],
    );
    page.counters(
        "audit_ship_failures",
        "Failed tries to ship audit checkpoints.",
        [(MetricLabels::new(), failures.load(Relaxed))],
    );
    let failing = u64::from(metrics.shipping.failing_since().is_some());
    page.gauge("audit_ship_failing", "Whether the last try to ship audit checkpoints failed: 1 or 0.", to_f64(failing));
    let loops = metrics.loops.all();
    let passes_by_loop = |value: fn(&crate::metrics::loops::LoopPasses) -> u64| -> Vec<_> {
        loops.iter().map(|(name, passes)| (single_label("loop", name), value(passes))).collect()
    };
    page.counters("loop_passes", "Runs of each reconciler.", passes_by_loop(|passes| passes.count.load(Relaxed)));
    page.counters(
        "loop_failures",
        "Failed runs of each reconciler.",
        passes_by_loop(|passes| passes.failed.load(Relaxed)),
    );
    let last = loops.iter().map(|(name, passes)| (single_label("loop", name), seconds(passes.last_at.load(Relaxed))));
    page.gauges("loop_last_run_timestamp_seconds", "End of the last run, in seconds since 1970.", last);
    let durations = loops
        .iter()
        .map(|(name, passes)| (single_label("loop", name), to_f64(passes.last_duration.load(Relaxed)) / 1e6));
    page.gauges("loop_last_duration_seconds", "Duration of the last run.", durations);
}

fn add_requests(page: &mut MetricsPage, metrics: &Metrics) {
    let routes = metrics.http.routes();
    let requests = routes.iter().flat_map(|(route, counts)| {
        let counts_by_class = counts.counts_by_class().filter(|(_, number)| *number > 0);
        counts_by_class.map(|(class, number)| (vec![("route", route.clone()), ("status", class.to_owned())], number))
    });
    page.counters("http_requests", "Requests by route and status class.", requests);
    let times = routes.iter().map(|(route, counts)| (single_label("route", route), counts.latency.snapshot()));
    page.histograms("http_request_seconds", "Time to the start of a response.", times);
    let (workers, users) = (&metrics.rejections.unknown_workers, &metrics.rejections.unknown_users);
    page.counters(
        "unauthenticated_requests",
        "Requests without a valid token.",
        [(single_label("of", "workers"), workers.load(Relaxed)), (single_label("of", "users"), users.load(Relaxed))],
    );
    let rejections = metrics.rejections.recorded().map(|(kind, number)| (single_label("kind", kind.as_str()), number));
    page.counters("rejections", "Rejected sign-ins, registrations and requests.", rejections);
}

fn add_host(page: &mut MetricsPage, services: &Services) {
    if let Some(space) = services.context.disk_space.space() {
        page.gauge("disk_free_bytes", "Free space on the data directory's disk.", to_f64(space.free));
        page.gauge("disk_size_bytes", "Size of that disk.", to_f64(space.total));
        page.gauge(
            "disk_floor_bytes",
            "Free space below which new jobs are rejected.",
            to_f64(services.context.disk_space.floor_bytes()),
        );
        let full = u64::from(services.context.disk_space.is_full());
        page.gauge("disk_full", "Whether new jobs are rejected for lack of disk space: 1 or 0.", to_f64(full));
    }
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    page.gauges("build_info", "The running version.", [(version, 1.0)]);
    let started = services.context.metrics.started_at;
    page.gauge("process_start_time_seconds", "Start time of this process, in seconds since 1970.", seconds(started.0));
    page.gauge(
        "uptime_seconds",
        "Time since the start of this process.",
        seconds((services.context.now() - started).0),
    );
    if let Some(usage) = process::current_usage() {
        page.gauge("process_resident_memory_bytes", "Resident memory of this process.", to_f64(usage.memory));
        page.gauge("process_open_fds", "Open files and sockets of this process.", to_f64(usage.files));
        page.gauge("process_max_fds", "Limit of open files and sockets.", to_f64(usage.max_files));
    }
}

fn single_label(name: &'static str, value: &str) -> MetricLabels {
    vec![(name, value.to_owned())]
}

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 may be off by one")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Converts milliseconds to seconds.
#[expect(clippy::cast_precision_loss, reason = "times in milliseconds are far below 2^53")]
fn seconds(millis: i64) -> f64 {
    millis as f64 / 1_000.0
}
