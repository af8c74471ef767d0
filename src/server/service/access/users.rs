//! People: who there is, and what they are here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use app::domain::access::{Role, is_name};
use app::domain::audit::Action;
use app::domain::ids::UserId;
use app::domain::notice::NoticeKind;
use app::protocol::access::{
    CreateUser, EditUser, ListedUser, PasswordReset, UserCounts, UserDetail, UserView, UsersPage, UsersQuery,
};
use app::protocol::topic::Topic;
use serde_json::json;

use super::Person;
use super::notices::{Changer, notify_of_change};
use super::sessions::end_sessions;
use super::setup::SETUP_CODE;
use super::tokens::revoke_tokens;
use crate::service::Core;
use crate::service::refusal::{Invalid, Refusal};
use crate::service::unit::{Caller, Unit};
use crate::store::access::{Activity, StoredUser};

impl Core {
    /// Whoever is asked for, and how many there are of each kind.
    pub async fn users_page(&self, query: &UsersQuery) -> Result<UsersPage, Refusal> {
        let mut tx = self.read().await?;
        let (all, used, with_factors) = (tx.users().await?, tx.activity().await?, tx.with_factors().await?);
        drop(tx);
        let with_factors: HashSet<UserId> = with_factors.into_iter().collect();
        let used: HashMap<UserId, Activity> = used.into_iter().map(|used| (used.user.clone(), used)).collect();
        let part = query.q.as_deref().unwrap_or_default().to_lowercase();
        let named: Vec<UserView> =
            all.into_iter().map(view).filter(|user| user.name.to_lowercase().contains(&part)).collect();
        let mut counts = UserCounts::default();
        for user in &named {
            counts.add(user);
        }
        let after = |user: &UserView| query.cursor.as_ref().is_none_or(|cursor| user.name > *cursor);
        let mut rest = named.into_iter().filter(|user| is_asked(query, user) && after(user));
        let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let listed = |user: UserView| {
            let used = used.get(&user.id);
            ListedUser {
                last_used_at: used.and_then(|used| used.at),
                tokens: used.map_or(0, |used| used.tokens),
                second_factor: with_factors.contains(&user.id),
                user,
            }
        };
        let users: Vec<ListedUser> = rest.by_ref().take(limit).map(listed).collect();
        let next_cursor = rest.next().and(users.last().map(|listed| listed.user.name.clone()));
        Ok(UsersPage { users, counts, next_cursor })
    }

    /// Somebody, with their tokens and sessions.
    pub async fn user_detail(&self, person: &Person, id: &UserId) -> Result<UserDetail, Refusal> {
        let user = self.read().await?.user(id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
        let (tokens, sessions) = (self.tokens_of(id).await?, self.sessions_of(person, id).await?);
        Ok(UserDetail { user: view(user), tokens, sessions, factors: self.factors_of(id).await? })
    }

    /// Whether there is somebody of this name.
    pub async fn is_somebody(&self, name: &str) -> bool {
        let found = async { Ok::<_, Refusal>(self.read().await?.user_by_name(name).await?) };
        found.await.is_ok_and(|user| user.is_some())
    }

    /// Adds somebody. Without a password they use API tokens that an admin makes, until an admin gives them one.
    pub async fn create_user(self: &Arc<Self>, caller: Caller, create: CreateUser) -> Result<UserView, Refusal> {
        check_name(&create.name)?;
        let hash = match &create.password {
            None => None,
            Some(password) => {
                self.check_password(&create.name, password).await?;
                Some(self.hashed(password).await?)
            }
        };
        let (id, role) = (UserId::new(self.now(), self.entropy()), create.role);
        let created = self.change(caller, move |unit| {
            let (id, hash, name) = (id.clone(), hash.clone(), create.name.clone());
            Box::pin(async move {
                unit.covers(role.permissions())?;
                let user = new_user(unit, id, &name, role).await?;
                if let Some(hash) = hash {
                    unit.tx.put_password(&user.id, &hash).await?;
                }
                if role == Role::Admin {
                    unit.tx.put_setting(SETUP_CODE, None).await?;
                }
                Ok(view(user))
            })
        });
        let created = created.await?;
        // The host's operator made the first admin: what the setup code was for is done.
        if role == Role::Admin {
            self.doors.unclaimed.store(false, Ordering::Relaxed);
        }
        Ok(created)
    }

    /// Changes somebody's role, or whether they are let in. Who is shut out is logged out at once.
    pub async fn edit_user(self: &Arc<Self>, caller: Caller, id: UserId, edit: EditUser) -> Result<UserView, Refusal> {
        self.change(caller, move |unit| {
            let id = id.clone();
            Box::pin(async move { edit_in(unit, &id, edit).await })
        })
        .await
    }

    /// Sets somebody's password without the old one. Whoever had the account may have made sessions and API tokens, so all
    /// of them end.
    pub async fn reset_password(
        self: &Arc<Self>,
        caller: Caller,
        id: UserId,
        password: &str,
    ) -> Result<PasswordReset, Refusal> {
        let by = Changer::named(&caller.actor);
        let user = self.read().await?.user(&id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
        self.check_password(&user.name, password).await?;
        let hash = self.hashed(password).await?;
        self.change(caller, move |unit| {
            let (id, hash, by) = (id.clone(), hash.clone(), by.clone());
            Box::pin(async move {
                let user = unit.tx.user(&id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
                unit.covers(user.role.permissions())?;
                unit.tx.put_password(&id, &hash).await?;
                unit.record(Action::PasswordReset, &user.name, &json!({})).await?;
                notify_of_change(unit, &id, NoticeKind::PasswordReset, &by).await?;
                let sessions_ended = end_sessions(unit, &user, None).await?;
                let tokens_revoked = revoke_tokens(unit, &user).await?;
                Ok(PasswordReset { success: true, sessions_ended, tokens_revoked })
            })
        })
        .await
    }
}

async fn edit_in(unit: &mut Unit<'_>, id: &UserId, edit: EditUser) -> Result<UserView, Refusal> {
    let before = unit.tx.user(id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
    let mut after = before.clone();
    after.role = edit.role.unwrap_or(before.role);
    match edit.disabled {
        Some(true) => after.disabled_at = before.disabled_at.or(Some(unit.now)),
        Some(false) => after.disabled_at = None,
        None => {}
    }
    if after == before {
        return Ok(view(after));
    }
    unit.covers(before.role.permissions())?;
    unit.covers(after.role.permissions())?;
    let is_admin = |user: &StoredUser| user.role == Role::Admin && user.disabled_at.is_none();
    let others = unit.tx.users().await?;
    if is_admin(&before) && !is_admin(&after) && !others.iter().any(|user| user.id != *id && is_admin(user)) {
        return Err(Refusal::LastAdmin);
    }
    unit.tx.update_user(&after).await?;
    let detail = json!({"role": after.role, "disabled": after.disabled_at.is_some()});
    unit.record(Action::UserEdited, &after.name, &detail).await?;
    unit.touch(Topic::Access(id.clone()));
    if after.disabled_at.is_some() {
        end_sessions(unit, &after, None).await?;
    }
    Ok(view(after))
}

/// Adds somebody who has no password yet.
pub(super) async fn new_user(unit: &mut Unit<'_>, id: UserId, name: &str, role: Role) -> Result<StoredUser, Refusal> {
    if unit.tx.user_by_name(name).await?.is_some() {
        return Err(Refusal::PersonThere(name.to_owned()));
    }
    let user =
        StoredUser { id, name: name.to_owned(), role, created_at: unit.now, disabled_at: None, unread_notices: 0 };
    unit.tx.insert_user(&user).await?;
    unit.record(Action::UserCreated, name, &json!({"role": role})).await?;
    Ok(user)
}

pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    let allowed = "1 to 32 lower-case letters, digits, `.`, `_` and `-`";
    if is_name(name) { Ok(()) } else { Err(Invalid::Range { field: "name", allowed }.into()) }
}

fn is_asked(query: &UsersQuery, user: &UserView) -> bool {
    let is_such = query.role.is_none_or(|role| user.role == role && !user.disabled);
    is_such && query.disabled.is_none_or(|disabled| user.disabled == disabled)
}

fn view(user: StoredUser) -> UserView {
    UserView {
        id: user.id,
        name: user.name,
        role: user.role,
        permissions: user.role.permissions(),
        created_at: user.created_at,
        disabled: user.disabled_at.is_some(),
    }
}
