//! The agent's own log.

use std::io::IsTerminal;

use app::domain::trace_context::TraceContext;
use app::logging::{LogFormatter, LogLineFormat};
use tracing_subscriber::prelude::*;

use crate::worker::terminal;

tokio::task_local! {
    /// The current job and its trace, for log lines.
    pub static CURRENT_JOB: (String, Option<TraceContext>);
}

/// Sends the agent's own log to stderr.
pub fn init_logging(verbose: bool, format: LogLineFormat) {
    let level = if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    let filter = tracing_subscriber::filter::Targets::new().with_target("simpletuner_worker", level);
    let lines = LogFormatter { format, with_target: false, context: log_context };
    let ansi =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() && format == LogLineFormat::Text;
    let layer = tracing_subscriber::fmt::layer().event_format(lines).with_writer(terminal::log_writer).with_ansi(ansi);
    // Log lines that cannot be written are lost. The default, an error on stderr, would panic in the code that logs.
    let layer = layer.log_internal_errors(false);
    // Fails only at a second call; the first one's settings then stay.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
}

/// The fields that log lines of the current job contain.
fn log_context() -> Vec<(&'static str, String)> {
    let fields = |(job, trace): &(String, Option<TraceContext>)| {
        let trace = trace.as_ref().map(|trace| ("trace_id", trace.trace_id().to_owned()));
        [("job_id", job.clone())].into_iter().chain(trace).collect()
    };
    CURRENT_JOB.try_with(fields).unwrap_or_default()
}
