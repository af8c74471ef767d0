//! Who may not come in, or not do this.

use app::domain::passkey::NoPasskeys;
use axum::http::StatusCode;

use super::ApiError;
use crate::service::refusal::{FactorRefusal, Refusal};

/// The problem of a refusal about access.
pub fn refused(refusal: &Refusal) -> ApiError {
    use StatusCode as S;
    let (status, code, detail) = match refusal {
        Refusal::Denied(permission) => (
            S::FORBIDDEN,
            "permission_denied",
            format!(
                "This takes the permission `{}`. Ask an admin for a role that has it, or use a token that is made for it.",
                permission.as_str()
            ),
        ),
        Refusal::WrongToken => (
            S::UNAUTHORIZED,
            "wrong_token",
            "This token or code opens nothing here. Check it for typing errors.".to_owned(),
        ),
        Refusal::Factor(refusal) => return factor(*refusal),
        Refusal::ProofNeeded => (
            S::FORBIDDEN,
            "password_needed",
            "This takes your password once more: give it at /confirm (or POST /api/session/proof), then do it again."
                .to_owned(),
        ),
        Refusal::NoUser(id) => (S::NOT_FOUND, "user_not_found", format!("There is nobody of the id {id}.")),
        Refusal::NoToken(id) => (S::NOT_FOUND, "token_not_found", format!("There is no API token {id} of yours.")),
        Refusal::NoSession(id) => (S::NOT_FOUND, "session_not_found", format!("There is no session {id} of yours.")),
        Refusal::PersonThere(name) => {
            (S::CONFLICT, "name_taken", format!("Somebody named {name:?} is there already. Choose another name."))
        }
        Refusal::TokenThere(name) => (
            S::CONFLICT,
            "name_taken",
            format!("You have a token named {name:?} already. Choose another name, or revoke that one first."),
        ),
        Refusal::LastAdmin => (
            S::CONFLICT,
            "last_admin",
            "This is the last admin who is let in. Make somebody else an admin first.".to_owned(),
        ),
        Refusal::NoAccounts => (
            S::CONFLICT,
            "no_accounts",
            "This server runs without accounts (--single-user). Start it without that to have people and tokens."
                .to_owned(),
        ),
        Refusal::NoPerson => (
            S::CONFLICT,
            "no_person",
            "The operator on the server's host has no account, and so no password, tokens or sessions. Name a person."
                .to_owned(),
        ),
        _ => (
            S::UNAUTHORIZED,
            "wrong_password",
            "This name and password do not open anything here. Check both for typing errors.".to_owned(),
        ),
    };
    let mut error = ApiError::new(status, code, detail);
    if let Refusal::Denied(permission) = refusal {
        error.extra.insert("permission".to_owned(), permission.as_str().into());
    }
    error
}

/// The problem of a refusal about second factors.
fn factor(refusal: FactorRefusal) -> ApiError {
    use StatusCode as S;
    let (status, code, detail) = match refusal {
        FactorRefusal::WrongCode => (
            S::UNPROCESSABLE_ENTITY,
            "wrong_code",
            "This code is not valid. Enter the current code of your authenticator app, each code once, or a recovery code \
             that you have not used.",
        ),
        FactorRefusal::NotBegun => {
            (S::NOT_FOUND, "no_enrolment", "No authenticator app is being set up. Start again on the account page.")
        }
        FactorRefusal::Exists => (
            S::CONFLICT,
            "factor_exists",
            "An authenticator app is set up already. Remove it first to set up another one.",
        ),
        FactorRefusal::Wanted => (
            S::FORBIDDEN,
            "factor_needed",
            "Your second factor is needed besides the password: a code of your app, a recovery code, or a passkey on the page \
             /confirm.",
        ),
        FactorRefusal::NoPasskeysHere(why) => return no_passkeys(why),
        FactorRefusal::NothingAsked => (
            S::CONFLICT,
            "passkey_expired",
            "The passkey request has expired: it lasts ten minutes and takes one answer. Try again.",
        ),
        FactorRefusal::WrongPasskey => (
            S::UNPROCESSABLE_ENTITY,
            "wrong_passkey",
            "This passkey was not accepted. Use one of those that are listed on the account page.",
        ),
        FactorRefusal::PasskeyCopied => (
            S::UNPROCESSABLE_ENTITY,
            "passkey_copied",
            "This passkey was not accepted because its counter went back: there may be a copy of it. Log in another way, remove \
             it on the account page, and add it again.",
        ),
        FactorRefusal::PasskeyThere => (S::CONFLICT, "passkey_exists", "This passkey is set up already."),
        FactorRefusal::NoPasskey => (S::NOT_FOUND, "passkey_not_found", "There is no such passkey of yours."),
        FactorRefusal::Missing => (S::NOT_FOUND, "factor_not_found", "No second factor is set up for this account."),
        FactorRefusal::NoPasswordSession => (
            S::CONFLICT,
            "no_password_session",
            "Second factors are managed in a browser. Log in there with your name and password.",
        ),
    };
    ApiError::new(status, code, detail)
}

/// The problem of an address at which there can be no passkeys.
fn no_passkeys(why: NoPasskeys) -> ApiError {
    let detail = match why {
        NoPasskeys::Insecure => {
            "Passkeys work over HTTPS only. Start the server with --ssl, or put it behind a proxy with HTTPS that \
             --trusted-proxies names."
        }
        NoPasskeys::NoName => {
            "Passkeys need a name in the address, not an IP address. Open this server under its name, on its own machine as \
             localhost."
        }
    };
    let mut error = ApiError::new(StatusCode::CONFLICT, "no_passkeys_here", detail);
    error.extra.insert("why".to_owned(), why.as_str().into());
    error
}
