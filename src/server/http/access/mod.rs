//! The routes of users, tokens and sessions.

pub(super) mod account;
pub(super) mod factors;
pub(super) mod password_attempts;
pub(super) mod session;
pub(super) mod users;
