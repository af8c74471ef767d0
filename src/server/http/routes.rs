//! Routes for people. None can be added without saying what it takes to use it.

use app::domain::audit::flood::Refused;
use app::domain::ids::JobId;
use axum::Router;
use axum::extract::{RawPathParams, Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::json;

use super::problem::ApiError;
use super::request::{Peer, caller};
use super::ui::forms;
use crate::service::access::{Needs, Person};
use crate::service::refusal::Refusal;
use crate::state::App;

/// See the module.
pub struct Routes {
    app: App,
    router: Router<App>,
    declared: Vec<Declared>,
}

/// A route and what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The method.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// What it takes.
    pub needs: Needs,
}

macro_rules! methods {
    ($($name:ident $filter:ident),+) => {
        $(
            #[doc = concat!("Answers ", stringify!($filter), ".")]
            #[must_use]
            pub fn $name<H, T>(self, path: &'static str, needs: Needs, handler: H) -> Self
            where
                H: Handler<T, App>,
                T: 'static,
            {
                self.on(Method::$filter, MethodFilter::$filter, path, needs, handler)
            }
        )+
    };
}

impl Routes {
    /// None yet.
    pub fn new(app: &App) -> Self {
        Self { app: app.clone(), router: Router::new(), declared: Vec::new() }
    }

    methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

    fn on<H, T>(mut self, method: Method, filter: MethodFilter, path: &'static str, needs: Needs, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let guard = from_fn_with_state((self.app.clone(), needs), permitted);
        self.router = self.router.route(path, on(filter, handler).route_layer(guard));
        self.declared.push(Declared { method, path, needs });
        self
    }

    /// These and those of another area.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.declared.extend(other.declared);
        self
    }

    /// The same, with something around those that are here already.
    #[must_use]
    pub fn within(mut self, wrap: impl FnOnce(Router<App>) -> Router<App>) -> Self {
        self.router = wrap(self.router);
        self
    }

    /// What was declared.
    #[cfg_attr(not(test), expect(dead_code, reason = "what each route takes is compared with a table by a test"))]
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// The router, to be put behind whatever finds out who is asking.
    pub fn into_router(self) -> Router<App> {
        self.router
    }
}

/// Lets in who may do what the route is for.
async fn permitted(
    State((app, needs)): State<(App, Needs)>,
    parameters: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let job = parameters.iter().find(|(name, _)| *name == "id").and_then(|(_, id)| JobId::parse(id).ok());
    let Some(person) = request.extensions().get::<Person>() else {
        return ApiError::not_authenticated().into_response();
    };
    let permitted = app.core.permit(person, needs, job.as_ref()).await;
    if let Err(Refusal::Denied(permission)) = &permitted {
        let wanted = format!("{} {}", request.method(), request.uri().path());
        let peer = request.extensions().get::<Peer>().map(|Peer(host)| *host);
        let detail = json!({"reason": "permission_denied", "permission": permission});
        app.core.record_refused(caller(person), Refused::Access, peer, &wanted, detail).await;
    }
    match permitted {
        Ok(()) => next.run(request).await,
        Err(refusal) if request.uri().path().starts_with("/ui/") => forms::denied(&app, request.headers(), refusal),
        Err(refusal) => ApiError::from(refusal).into_response(),
    }
}
