//! Routes. None can be added without saying who may use it, and what it is for.

use app::domain::audit::flood::Refused;
use app::domain::ids::JobId;
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::json;

use super::access;
use super::openapi::doc::Doc;
use super::openapi::signature::{Described, Signature};
use super::problem::ApiError;
use super::request::{Peer, caller};
use super::ui::forms;
use crate::service::access::{Needs, Person};
use crate::service::keys::TokenUse;
use crate::service::refusal::Refusal;
use crate::state::App;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Anyone,
    /// A person or a script of theirs, with what it takes. Who it is, the group's guard finds out.
    Person(Needs),
    /// A worker that registers.
    Newcomer,
    /// A worker's agent, by its session, or for this by its token.
    Worker(TokenUse),
    /// The job that a worker runs; for older agents, and to report where it stands, the worker's agent.
    Job,
}

impl From<Needs> for Access {
    fn from(needs: Needs) -> Self {
        Self::Person(needs)
    }
}

/// See the module.
pub struct Routes {
    app: App,
    tag: &'static str,
    router: Router<App>,
    declared: Vec<Declared>,
    forms: Vec<String>,
}

/// A route as it was declared.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The method.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: String,
    /// Who may use it.
    pub access: Access,
    /// The area it belongs to.
    pub tag: &'static str,
    /// What it says of itself.
    pub doc: Doc,
    /// What its handler says of it.
    pub signature: Signature,
}

impl Declared {
    /// The path as the description writes it.
    pub fn template(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// The names of its parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).map(|name| name.trim_start_matches('*'))
    }
}

macro_rules! methods {
    ($($name:ident $filter:ident),+) => {
        $(
            #[doc = concat!("Answers ", stringify!($filter), ".")]
            #[must_use]
            pub fn $name<H, T>(self, path: &str, access: impl Into<Access>, doc: Doc, handler: H) -> Self
            where
                H: Handler<T, App> + Described<T>,
                T: 'static,
            {
                self.on(Method::$filter, MethodFilter::$filter, path, access.into(), doc, handler)
            }
        )+
    };
}

impl Routes {
    /// None yet, of this area.
    pub fn new(app: &App, tag: &'static str) -> Self {
        Self { app: app.clone(), tag, router: Router::new(), declared: Vec::new(), forms: Vec::new() }
    }

    methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

    fn on<H, T>(
        mut self,
        method: Method,
        filter: MethodFilter,
        path: &str,
        access: Access,
        doc: Doc,
        handler: H,
    ) -> Self
    where
        H: Handler<T, App> + Described<T>,
        T: 'static,
    {
        self.router = self.router.route(path, guarded(&self.app, access, on(filter, handler)));
        let (path, tag, signature) = (path.to_owned(), self.tag, H::signature());
        self.declared.push(Declared { method, path, access, tag, doc, signature });
        self
    }

    /// Answers the form of a page. It calls what the API calls, and is no part of it.
    #[must_use]
    pub fn form<H, T>(mut self, path: &str, access: impl Into<Access>, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.router = self.router.route(path, guarded(&self.app, access.into(), on(MethodFilter::POST, handler)));
        self.forms.push(path.to_owned());
        self
    }

    /// These and those of another area.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.declared.extend(other.declared);
        self.forms.extend(other.forms);
        self
    }

    /// The same, with something around those that are here already.
    #[must_use]
    pub fn within(mut self, wrap: impl FnOnce(Router<App>) -> Router<App>) -> Self {
        self.router = wrap(self.router);
        self
    }

    /// What was declared, for paths below this one.
    pub fn declared(&self, below: &str) -> Vec<Declared> {
        let whole = |route: &Declared| Declared { path: format!("{below}{}", route.path), ..route.clone() };
        self.declared.iter().map(whole).collect()
    }

    /// The forms of pages.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test posts each of them from other sites"))]
    pub fn forms(&self) -> &[String] {
        &self.forms
    }

    /// The router; that of people's routes has to be put behind whatever finds out who is asking.
    pub fn into_router(self) -> Router<App> {
        self.router
    }
}

/// Nothing gets past this that is not what the route is for.
fn guarded(app: &App, access: Access, methods: MethodRouter<App>) -> MethodRouter<App> {
    match access {
        Access::Anyone => methods,
        Access::Person(needs) => methods.route_layer(from_fn_with_state((app.clone(), needs), permitted)),
        Access::Newcomer => methods.route_layer(from_fn_with_state(app.clone(), access::newcomer)),
        Access::Worker(to) => methods.route_layer(from_fn_with_state((app.clone(), to), access::worker)),
        Access::Job => methods.route_layer(from_fn_with_state(app.clone(), access::job)),
    }
}

/// Lets in who may do what the route is for.
async fn permitted(
    State((app, needs)): State<(App, Needs)>,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let job = parameters.iter().flatten().find(|(name, _)| *name == "id").and_then(|(_, id)| JobId::parse(id).ok());
    let Some(person) = request.extensions().get::<Person>() else {
        return ApiError::not_authenticated().into_response();
    };
    let permitted = app.core.permit(person, needs, job.as_ref()).await;
    if let Err(Refusal::Denied(permission)) = &permitted {
        let wanted = access::wanted(&request);
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
