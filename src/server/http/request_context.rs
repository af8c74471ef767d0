//! The ids, the language and the user of the current request, for everything that handles it.

use std::future::pending;
use std::panic::resume_unwind;

use app::domain::trace_context::TraceContext;
use app::ui::prefs::Locale;
use tokio::task::JoinError;

tokio::task_local! {
    static CURRENT: RequestContext;
    static CURRENT_USER: String;
}

/// The request's data for everything that handles it.
#[derive(Clone)]
pub struct RequestContext {
    pub id: String,
    /// Its `traceparent`, if valid.
    pub trace: Option<TraceContext>,
    /// The language of its problems.
    pub locale: Locale,
}

/// Returns the id of the current request.
pub fn current_id() -> Option<String> {
    CURRENT.try_with(|current| current.id.clone()).ok()
}

/// Returns the language that the client of the current request asks for; English outside of requests.
pub fn current_locale() -> Locale {
    CURRENT.try_with(|current| current.locale).unwrap_or_default()
}

/// Handles a request in this context.
pub async fn with_context<T>(context: RequestContext, work: impl Future<Output = T>) -> T {
    CURRENT.scope(context, work).await
}

/// Handles a request of this user.
pub async fn with_user<T>(name: String, work: impl Future<Output = T>) -> T {
    CURRENT_USER.scope(name, work).await
}

/// Returns the user of the current request, if authenticated.
pub fn current_user() -> Option<String> {
    CURRENT_USER.try_with(String::clone).ok()
}

/// Returns the trace of the current request.
pub fn current_trace() -> Option<TraceContext> {
    CURRENT.try_with(|current| current.trace.clone()).ok().flatten()
}

/// Runs work of the current request to its end, even if the client disconnects.
pub async fn run_to_completion<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let task = match CURRENT.try_with(RequestContext::clone) {
        Ok(current) => tokio::spawn(CURRENT.scope(current, work)),
        Err(_) => tokio::spawn(work),
    };
    match task.await.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime shuts down.
        Err(Err(_)) => pending().await,
    }
}

/// Returns the log fields of the current request.
pub fn log_context() -> Vec<(&'static str, String)> {
    let fields = |current: &RequestContext| {
        let trace = current.trace.as_ref().map(|trace| ("trace_id", trace.trace_id().to_owned()));
        [("request_id", current.id.clone())].into_iter().chain(trace).collect()
    };
    CURRENT.try_with(fields).unwrap_or_default()
}
