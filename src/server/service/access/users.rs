//! Users and their roles.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use app::domain::access::{Role, is_valid_name};
use app::domain::allowed_values::AllowedValues;
use app::domain::audit::AuditAction;
use app::domain::ids::UserId;
use app::domain::notice::NoticeKind;
use app::protocol::access::{
    CreateUser, EditUser, ListedUser, PasswordReset, UserCounts, UserDetail, UserView, UsersPage, UsersQuery,
};
use app::protocol::topic::Topic;
use serde_json::json;

use super::Principal;
use super::notices::{ChangeAuthor, add_change_notice};
use super::sessions::end_sessions;
use super::setup::SETUP_CODE_SETTING;
use super::tokens::revoke_tokens;
use crate::service::access::AccessService;
use crate::service::error::{InvalidField, ServiceError};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::access::{StoredUser, UserActivity};

impl AccessService {
    /// Returns the users that match the query, and their number per kind.
    pub async fn users_page(&self, query: &UsersQuery) -> Result<UsersPage, ServiceError> {
        let mut tx = self.context.read().await?;
        let (all, activity, with_factors) =
            (tx.users().await?, tx.user_activity().await?, tx.users_with_factors().await?);
        drop(tx);
        let with_factors: HashSet<UserId> = with_factors.into_iter().collect();
        let activity: HashMap<UserId, UserActivity> =
            activity.into_iter().map(|activity| (activity.user.clone(), activity)).collect();
        let name_part = query.q.as_deref().unwrap_or_default().to_lowercase();
        let matching: Vec<UserView> =
            all.into_iter().map(user_view).filter(|user| user.name.to_lowercase().contains(&name_part)).collect();
        let mut counts = UserCounts::default();
        for user in &matching {
            counts.add(user);
        }
        let after = |user: &UserView| query.cursor.as_ref().is_none_or(|cursor| user.name > *cursor);
        let mut rest = matching.into_iter().filter(|user| matches_query(query, user) && after(user));
        let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let listed = |user: UserView| {
            let activity = activity.get(&user.id);
            ListedUser {
                last_used_at: activity.and_then(|activity| activity.last_used_at),
                tokens: activity.map_or(0, |activity| activity.tokens),
                second_factor: with_factors.contains(&user.id),
                user,
            }
        };
        let users: Vec<ListedUser> = rest.by_ref().take(limit).map(listed).collect();
        let next_cursor = rest.next().and(users.last().map(|listed| listed.user.name.clone()));
        Ok(UsersPage { users, counts, next_cursor })
    }

    /// Returns a user with their tokens and sessions.
    pub async fn user_detail(&self, principal: &Principal, id: &UserId) -> Result<UserDetail, ServiceError> {
        let user = self.context.read().await?.user(id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
        let (tokens, sessions) = (self.user_tokens(id).await?, self.user_sessions(principal, id).await?);
        Ok(UserDetail { user: user_view(user), tokens, sessions, factors: self.user_factors(id).await? })
    }

    pub async fn user_exists(&self, name: &str) -> bool {
        let found = async { Ok::<_, ServiceError>(self.context.read().await?.user_by_name(name).await?) };
        found.await.is_ok_and(|user| user.is_some())
    }

    /// Creates a user. Without a password they can only use API tokens from an admin, until an admin sets a password.
    pub async fn create_user(self: &Arc<Self>, caller: Caller, create: CreateUser) -> Result<UserView, ServiceError> {
        self.check_new_user(&create.name, create.password.as_deref()).await?;
        let hash = match &create.password {
            None => None,
            Some(password) => Some(self.hash_password(password).await?),
        };
        let (id, role) = (UserId::new(self.context.now(), self.context.entropy()), create.role);
        let created = self.context.change(caller, move |unit| {
            let (id, hash, name) = (id.clone(), hash.clone(), create.name.clone());
            Box::pin(async move {
                unit.require_covered(role.permissions())?;
                let user = insert_user(unit, id, &name, role).await?;
                if let Some(hash) = hash {
                    unit.tx.put_password(&user.id, &hash).await?;
                }
                if role == Role::Admin {
                    unit.tx.put_setting(SETUP_CODE_SETTING, None).await?;
                }
                Ok(user_view(user))
            })
        });
        let created = created.await?;
        // The host's operator has created the first admin, so the setup code is no longer needed.
        if role == Role::Admin {
            self.authenticator.setup_pending.store(false, Ordering::Relaxed);
        }
        Ok(created)
    }

    /// Changes a user's role, or disables or enables a user. A disabled user is signed out immediately.
    pub async fn edit_user(
        self: &Arc<Self>,
        caller: Caller,
        id: UserId,
        edit: EditUser,
    ) -> Result<UserView, ServiceError> {
        self.context
            .change(caller, move |unit| {
                let id = id.clone();
                Box::pin(async move { edit_in(unit, &id, edit).await })
            })
            .await
    }

    /// Sets a user's password without the old one. An attacker who controlled the account may have created sessions and
    /// API tokens, so all of them are revoked.
    pub async fn reset_password(
        self: &Arc<Self>,
        caller: Caller,
        id: UserId,
        password: &str,
    ) -> Result<PasswordReset, ServiceError> {
        let by = ChangeAuthor::named(&caller.actor);
        let user = self.context.read().await?.user(&id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
        self.check_password(&user.name, password).await?;
        let hash = self.hash_password(password).await?;
        self.context
            .change(caller, move |unit| {
                let (id, hash, by) = (id.clone(), hash.clone(), by.clone());
                Box::pin(async move {
                    let user = unit.tx.user(&id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
                    unit.require_covered(user.role.permissions())?;
                    unit.tx.put_password(&id, &hash).await?;
                    unit.record(AuditAction::PasswordReset, &user.name, &json!({})).await?;
                    add_change_notice(unit, &id, NoticeKind::PasswordReset, &by).await?;
                    let sessions_ended = end_sessions(unit, &user, None).await?;
                    let tokens_revoked = revoke_tokens(unit, &user).await?;
                    Ok(PasswordReset { success: true, sessions_ended, tokens_revoked })
                })
            })
            .await
    }
}

async fn edit_in(unit: &mut UnitOfWork<'_>, id: &UserId, edit: EditUser) -> Result<UserView, ServiceError> {
    let before = unit.tx.user(id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
    let mut after = before.clone();
    after.role = edit.role.unwrap_or(before.role);
    match edit.disabled {
        Some(true) => after.disabled_at = before.disabled_at.or(Some(unit.now)),
        Some(false) => after.disabled_at = None,
        None => {}
    }
    if after == before {
        return Ok(user_view(after));
    }
    unit.require_covered(before.role.permissions())?;
    unit.require_covered(after.role.permissions())?;
    let is_admin = |user: &StoredUser| user.role == Role::Admin && user.disabled_at.is_none();
    let others = unit.tx.users().await?;
    if is_admin(&before) && !is_admin(&after) && !others.iter().any(|user| user.id != *id && is_admin(user)) {
        return Err(ServiceError::LastAdmin);
    }
    unit.tx.update_user(&after).await?;
    let detail = json!({"role": after.role, "disabled": after.disabled_at.is_some()});
    unit.record(AuditAction::UserEdited, &after.name, &detail).await?;
    unit.notify(Topic::Access(id.clone()));
    if after.disabled_at.is_some() {
        end_sessions(unit, &after, None).await?;
    }
    Ok(user_view(after))
}

pub(super) async fn insert_user(
    unit: &mut UnitOfWork<'_>,
    id: UserId,
    name: &str,
    role: Role,
) -> Result<StoredUser, ServiceError> {
    if unit.tx.user_by_name(name).await?.is_some() {
        return Err(ServiceError::UserExists(name.to_owned()));
    }
    let user =
        StoredUser { id, name: name.to_owned(), role, created_at: unit.now, disabled_at: None, unread_notices: 0 };
    unit.tx.insert_user(&user).await?;
    unit.record(AuditAction::UserCreated, name, &json!({"role": role})).await?;
    Ok(user)
}

/// Checks the name of a user or a token.
pub(super) fn invalid_name_field(name: &str) -> Option<InvalidField> {
    (!is_valid_name(name)).then(|| InvalidField::out_of_range("name", AllowedValues::AccountName))
}

fn matches_query(query: &UsersQuery, user: &UserView) -> bool {
    let has_role = query.role.is_none_or(|role| user.role == role && !user.disabled);
    has_role && query.disabled.is_none_or(|disabled| user.disabled == disabled)
}

fn user_view(user: StoredUser) -> UserView {
    UserView {
        id: user.id,
        name: user.name,
        role: user.role,
        permissions: user.role.permissions(),
        created_at: user.created_at,
        disabled: user.disabled_at.is_some(),
    }
}
