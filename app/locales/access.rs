//! The words around coming in.

use super::Text;

pub(crate) struct Login {
    pub title: Text,
    pub intro: Text,
    pub name: Text,
    pub password: Text,
    pub submit: Text,
    pub with_token: Text,
    pub with_token_text: Text,
    pub lost: Text,
    pub lost_text: Text,
    pub setup_title: Text,
    pub setup_intro: Text,
    pub code: Text,
    pub code_hint: Text,
    pub name_hint: Text,
    pub password_hint: Text,
    pub setup_submit: Text,
}
