//! Saved views of the list of jobs: personal ones, and those that all users see.

use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::audit::AuditAction;
use app::domain::text::is_plain;
use app::protocol::jobs::JobsQuery;
use app::protocol::jobs::saved_views::{SaveView, SavedView, SavedViews};
use serde_json::json;

use super::JobService;
use super::list::JobListQuery;
use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::unit_of_work::Caller;
use crate::store::StoreError;
use crate::store::jobs::saved_views::StoredView;

/// The maximum number of views of a user.
const MAX_VIEWS: usize = 100;
/// The maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 64;
/// The maximum length of a query string in bytes.
const MAX_QUERY_BYTES: usize = 8_000;

impl JobService {
    /// Lists the views that a user sees.
    pub async fn saved_views(&self, principal: &Principal) -> Result<SavedViews, ServiceError> {
        let views = self.context.read().await?.saved_views(&principal.name).await?;
        Ok(SavedViews { views: views.into_iter().map(saved_view).collect() })
    }

    /// Creates or replaces a view of the user.
    pub async fn save_view(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        name: &str,
        save: &SaveView,
    ) -> Result<SavedView, ServiceError> {
        if save.shared {
            principal.require(Permission::JobSubmit)?;
        }
        let name = name.trim();
        if name.is_empty() || !is_plain(name, MAX_NAME_CHARS) {
            let allowed = AllowedValues::VisibleCharacters { min: 1, max: MAX_NAME_CHARS as u64 };
            return Err(InvalidInput::OutOfRange { field: "name", allowed }.into());
        }
        let view = Arc::new(StoredView {
            owner: principal.name.clone(),
            name: name.to_owned(),
            query: normalized(principal, &save.query)?,
            shared: save.shared,
            saved_at: self.context.now(),
        });
        self.context
            .change(caller, move |unit| {
                let view = Arc::clone(&view);
                Box::pin(async move {
                    let existing = unit.tx.saved_views(&view.owner).await?;
                    let others = existing.iter().filter(|other| other.owner == view.owner && other.name != view.name);
                    if others.count() >= MAX_VIEWS {
                        let items = LimitedItems::SavedViews;
                        return Err(InvalidInput::TooMuch { items, limit: MAX_VIEWS as u64 }.into());
                    }
                    unit.tx.save_view(&view).await?;
                    let detail = json!({"owner": view.owner, "query": view.query, "shared": view.shared});
                    unit.record(AuditAction::ViewSaved, &view.name, &detail).await?;
                    Ok(saved_view(StoredView::clone(&view)))
                })
            })
            .await
    }

    /// Deletes a view: one of the user, or with `queue.manage` a shared one.
    pub async fn delete_view(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        owner: Option<&str>,
        name: &str,
    ) -> Result<(), ServiceError> {
        let owner = owner.unwrap_or(&principal.name);
        let is_own = owner == principal.name;
        let manages = principal.permissions.contains(Permission::QueueManage);
        let key = Arc::new((owner.to_owned(), name.to_owned()));
        self.context
            .change(caller, move |unit| {
                let key = Arc::clone(&key);
                Box::pin(async move {
                    let (owner, name) = &*key;
                    let found = unit.tx.saved_views(owner).await?;
                    let view = found.iter().find(|view| view.owner == *owner && view.name == *name);
                    // Personal views of other users are not disclosed.
                    if !view.is_some_and(|view| is_own || view.shared) {
                        return Err(ServiceError::ViewNotFound(name.clone()));
                    }
                    if !is_own && !manages {
                        return Err(ServiceError::PermissionDenied(Permission::QueueManage));
                    }
                    match unit.tx.delete_view(owner, name).await {
                        Err(StoreError::Conflict) => return Err(ServiceError::ViewNotFound(name.clone())),
                        other => other?,
                    }
                    unit.record(AuditAction::ViewDeleted, name, &json!({"owner": owner})).await
                })
            })
            .await
    }
}

/// The query string with only what belongs to a view. It must be valid.
fn normalized(principal: &Principal, query: &str) -> Result<String, ServiceError> {
    let invalid = InvalidInput::OutOfRange { field: "query", allowed: AllowedValues::JobsQuery };
    if query.len() > MAX_QUERY_BYTES {
        return Err(invalid.into());
    }
    let query: JobsQuery = serde_urlencoded::from_str(query.trim_start_matches('?')).map_err(|_| invalid.clone())?;
    let query = JobsQuery { cursor: None, limit: None, zone: None, ..query };
    JobListQuery::parse(principal, &query)?;
    Ok(serde_urlencoded::to_string(&query).map_err(|_| invalid)?)
}

fn saved_view(view: StoredView) -> SavedView {
    let StoredView { owner, name, query, shared, saved_at } = view;
    SavedView { owner, name, query, shared, saved_at }
}
