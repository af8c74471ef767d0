//! Routes. Each one must declare who may use it and its documentation.

use app::domain::audit::rate_limit::RejectionKind;
use app::domain::ids::JobId;
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::json;

use super::guards;
use super::operation::doc::OperationDoc;
use super::operation::signature::{HandlerSignature, Signature};
use super::problem::ApiError;
use crate::http::edge::request::{Peer, caller_from_principal};
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::ServiceError;
use crate::service::workers::tokens::TokenUse;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// No authentication.
    Anyone,
    /// A user or an API token, with the given requirement. The group's guard authenticates them.
    Principal(Requirement),
    /// A worker that registers.
    Registration,
    /// A worker's agent with its session, or, if allowed here, its token.
    Worker(TokenUse),
    /// The job that a worker runs; for older agents, and to report an attempt's state, the worker's agent.
    Job,
}

impl From<Requirement> for RouteAccess {
    fn from(requirement: Requirement) -> Self {
        Self::Principal(requirement)
    }
}

/// The response to a caller without the permission that a route requires.
pub type DeniedResponse = fn(&AppState, &HeaderMap, ServiceError) -> Response;

/// Routes of one area, with their declarations.
pub struct Routes {
    app: AppState,
    tag: &'static str,
    denied: DeniedResponse,
    router: Router<AppState>,
    declared: Vec<DeclaredRoute>,
    forms: Vec<(String, RouteAccess)>,
}

/// A declared route.
#[derive(Debug, Clone)]
pub struct DeclaredRoute {
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: String,
    pub access: RouteAccess,
    /// The area, a tag in `OpenAPI`.
    pub tag: &'static str,
    pub doc: OperationDoc,
    /// Parameters and types of the handler.
    pub signature: Signature,
}

impl DeclaredRoute {
    /// Returns the path as `OpenAPI` writes it.
    pub fn template(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// Returns the names of its parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).map(|name| name.trim_start_matches('*'))
    }
}

macro_rules! methods {
    ($($name:ident $filter:ident),+) => {
        $(
            #[doc = concat!("Adds a route for ", stringify!($filter), ".")]
            #[must_use]
            pub fn $name<H, T>(self, path: &str, access: impl Into<RouteAccess>, doc: OperationDoc, handler: H) -> Self
            where
                H: Handler<T, AppState> + HandlerSignature<T>,
                T: 'static,
            {
                self.add_route(Method::$filter, MethodFilter::$filter, path, access.into(), doc, handler)
            }
        )+
    };
}

impl Routes {
    /// Creates an empty set of routes of this area.
    pub fn new(app: &AppState, tag: &'static str) -> Self {
        let denied: DeniedResponse = |_, _, error| ApiError::from(error).into_response();
        Self { app: app.clone(), tag, denied, router: Router::new(), declared: Vec::new(), forms: Vec::new() }
    }

    /// Denies the routes that are added next with this response, instead of a problem document.
    #[must_use]
    pub fn deny_with(self, denied: DeniedResponse) -> Self {
        Self { denied, ..self }
    }

    methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

    fn add_route<H, T>(
        mut self,
        method: Method,
        filter: MethodFilter,
        path: &str,
        access: RouteAccess,
        doc: OperationDoc,
        handler: H,
    ) -> Self
    where
        H: Handler<T, AppState> + HandlerSignature<T>,
        T: 'static,
    {
        let method_router = self.apply_guard(access, on(filter, handler));
        self.router = self.router.route(path, method_router);
        let (path, tag, signature) = (path.to_owned(), self.tag, H::signature());
        self.declared.push(DeclaredRoute { method, path, access, tag, doc, signature });
        self
    }

    /// Adds the form of a page. It calls the same use case as the API, but is not part of it.
    #[must_use]
    pub fn form<H, T>(mut self, path: &str, access: impl Into<RouteAccess>, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        let access = access.into();
        let method_router = self.apply_guard(access, on(MethodFilter::POST, handler));
        self.router = self.router.route(path, method_router);
        self.forms.push((path.to_owned(), access));
        self
    }

    /// Adds the routes of another area.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.declared.extend(other.declared);
        self.forms.extend(other.forms);
        self
    }

    /// Wraps the routes that have been added so far.
    #[must_use]
    pub fn layer(mut self, add_layer: impl FnOnce(Router<AppState>) -> Router<AppState>) -> Self {
        self.router = add_layer(self.router);
        self
    }

    /// Returns the declared routes, with paths below a prefix.
    pub fn declared_below(&self, below: &str) -> Vec<DeclaredRoute> {
        let full_route =
            |route: &DeclaredRoute| DeclaredRoute { path: format!("{below}{}", route.path), ..route.clone() };
        self.declared.iter().map(full_route).collect()
    }

    /// Returns the paths of the forms of pages, and who may post them.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub fn forms(&self) -> &[(String, RouteAccess)] {
        &self.forms
    }

    /// Returns the router. Routes of users must be behind the layer that authenticates the caller.
    pub fn into_router(self) -> Router<AppState> {
        self.router
    }

    /// Adds the guard that checks the access of a route.
    fn apply_guard(&self, access: RouteAccess, methods: MethodRouter<AppState>) -> MethodRouter<AppState> {
        let app = self.app.clone();
        match access {
            RouteAccess::Anyone => methods,
            RouteAccess::Principal(requirement) => {
                methods.route_layer(from_fn_with_state((app, requirement, self.denied), check_permission))
            }
            RouteAccess::Registration => methods.route_layer(from_fn_with_state(app, guards::require_registration)),
            RouteAccess::Worker(token_use) => {
                methods.route_layer(from_fn_with_state((app, token_use), guards::require_worker))
            }
            RouteAccess::Job => methods.route_layer(from_fn_with_state(app, guards::require_job)),
        }
    }
}

/// Checks the permission that the route requires.
async fn check_permission(
    State((app, requirement, denied)): State<(AppState, Requirement, DeniedResponse)>,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let job = parameters.iter().flatten().find(|(name, _)| *name == "id").and_then(|(_, id)| JobId::parse(id).ok());
    let Some(principal) = request.extensions().get::<Principal>() else {
        return ApiError::not_authenticated().into_response();
    };
    let result = app.services.access.authorize(principal, requirement, job.as_ref()).await;
    if let Err(ServiceError::PermissionDenied(permission)) = &result {
        let target = guards::request_target(&request);
        let peer = request.extensions().get::<Peer>().map(|Peer(host)| *host);
        let detail = json!({"reason": "permission_denied", "permission": permission});
        app.services
            .audit
            .record_rejection(caller_from_principal(principal), RejectionKind::AccessDenied, peer, &target, detail)
            .await;
    }
    match result {
        Ok(()) => next.run(request).await,
        Err(error) => denied(&app, request.headers(), error),
    }
}
