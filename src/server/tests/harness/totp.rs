//! Users with an authenticator app.

use axum::http::header;
use serde_json::json;
use totp_rs::{Builder, Secret};

use super::{Actor, PASSWORD, TestResponse, TestServer};
use crate::clock::Clock;

/// A user who has set up an app.
pub struct TotpUser {
    /// Their signed-in browser.
    pub browser: Actor,
    /// The key of the app in base 32.
    pub secret: String,
    /// Their recovery codes.
    pub recovery_codes: Vec<String>,
}

/// Adds a viewer of this name and sets up an app.
pub async fn user_with_totp(server: &TestServer, name: &str) -> TotpUser {
    let browser = server.add_user(name, "viewer").await;
    set_up_totp(server, browser).await
}

/// Sets up an app for the user of this browser, and advances the clock so that the next code is a new one.
pub async fn set_up_totp(server: &TestServer, browser: Actor) -> TotpUser {
    let setup = server.post(&browser, "/api/account/totp", json!({})).await.expect_status(201);
    let secret = setup["secret"].as_str().expect("text").to_owned();
    let confirm = json!({"code": current_code(server, &secret)});
    let confirmation = server.post(&browser, "/api/account/totp/confirm", confirm).await.expect_status(200);
    server.clock.advance(app::domain::time::Millis::from_secs(30));
    let codes = confirmation["recovery_codes"].as_array().expect("a list").iter();
    let recovery_codes = codes.map(|code| code.as_str().expect("text").to_owned()).collect();
    TotpUser { browser, secret, recovery_codes }
}

/// Returns the current code of the app.
pub fn current_code(server: &TestServer, secret: &str) -> String {
    code_at_step(server, secret, 0)
}

/// Returns the code this many steps from now.
pub fn code_at_step(server: &TestServer, secret: &str, steps: i64) -> String {
    let secret = Secret::try_from_base32(secret).expect("base 32");
    let app = Builder::new().with_secret(secret).build().expect("a key of 20 bytes");
    let seconds = server.clock.now().0 / 1_000 + steps * 30;
    app.generate(seconds.unsigned_abs()).to_string()
}

/// Sends the correct password; returns the response and the cookies that it sets.
pub async fn log_in_with_password(server: &TestServer, name: &str, browser_cookies: &str) -> (TestResponse, String) {
    let form = format!("name={name}&password={PASSWORD}");
    let response = server.call(&Actor::Cookie(browser_cookies.to_owned()), "POST", "/ui/login", form).await;
    let cookies = set_cookies(&response);
    (response, cookies)
}

/// Returns the cookies that a response sets, as a browser sends them.
pub fn set_cookies(response: &TestResponse) -> String {
    let cookies = response.headers.get_all(header::SET_COOKIE).into_iter().filter_map(|cookie| cookie.to_str().ok());
    cookies.filter_map(|cookie| cookie.split(';').next()).collect::<Vec<_>>().join("; ")
}

/// Returns the session among the cookies.
pub fn session_actor(cookies: &str) -> Option<Actor> {
    let session = cookies.split("; ").find(|pair| pair.starts_with("sid="));
    session.map(|session| Actor::Cookie(session.to_owned()))
}

/// Signs in with the correct password and this code; returns the browser on success.
pub async fn log_in(server: &TestServer, name: &str, code: &str) -> Option<Actor> {
    let (_, pending) = log_in_with_password(server, name, "").await;
    let response = server.call(&Actor::Cookie(pending), "POST", "/ui/login/code", format!("code={code}")).await;
    session_actor(&set_cookies(&response))
}
