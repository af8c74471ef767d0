//! Somebody with an authenticator app.

use axum::http::header;
use serde_json::json;
use totp_rs::{Builder, Secret};

use super::{Answer, By, PASSWORD, Server};
use crate::clock::Clock;

/// Somebody who has set an app up.
pub struct Enrolled {
    /// Their browser, which is logged in.
    pub browser: By,
    /// The key that the app has, in base 32.
    pub secret: String,
    /// As they were shown.
    pub recovery_codes: Vec<String>,
}

/// Adds a viewer of this name and sets an app up for them.
pub async fn enrolled(server: &Server, name: &str) -> Enrolled {
    let browser = server.person(name, "viewer").await;
    enrol(server, browser).await
}

/// Sets an app up for whoever has this browser. The clock moves on, so that the next code is another one.
pub async fn enrol(server: &Server, browser: By) -> Enrolled {
    let begun = server.post(&browser, "/api/account/totp", json!({})).await.ok(201);
    let secret = begun["secret"].as_str().expect("text").to_owned();
    let confirm = json!({"code": code(server, &secret)});
    let done = server.post(&browser, "/api/account/totp/confirm", confirm).await.ok(200);
    server.clock.advance(app::domain::time::Millis::seconds(30));
    let codes = done["recovery_codes"].as_array().expect("a list").iter();
    let recovery_codes = codes.map(|code| code.as_str().expect("text").to_owned()).collect();
    Enrolled { browser, secret, recovery_codes }
}

/// What the app shows now.
pub fn code(server: &Server, secret: &str) -> String {
    code_in(server, secret, 0)
}

/// What it shows so many steps from now.
pub fn code_in(server: &Server, secret: &str, steps: i64) -> String {
    let secret = Secret::try_from_base32(secret).expect("base 32");
    let app = Builder::new().with_secret(secret).build().expect("a key of 20 bytes");
    let seconds = server.clock.now().0 / 1_000 + steps * 30;
    app.generate(seconds.unsigned_abs()).to_string()
}

/// Gives the right password; the answer, and the cookies that it sets.
pub async fn password(server: &Server, name: &str, before: &str) -> (Answer, String) {
    let form = format!("name={name}&password={PASSWORD}");
    let answer = server.call(&By::Cookie(before.to_owned()), "POST", "/ui/login", form).await;
    let cookies = cookies(&answer);
    (answer, cookies)
}

/// The cookies that an answer sets, as a browser sends them.
pub fn cookies(answer: &Answer) -> String {
    let all = answer.headers.get_all(header::SET_COOKIE).into_iter().filter_map(|cookie| cookie.to_str().ok());
    all.filter_map(|cookie| cookie.split(';').next()).collect::<Vec<_>>().join("; ")
}

/// The session among them, if there is one.
pub fn session(cookies: &str) -> Option<By> {
    let session = cookies.split("; ").find(|pair| pair.starts_with("sid="));
    session.map(|session| By::Cookie(session.to_owned()))
}

/// Logs in with the right password and this code; the browser, if it was let in.
pub async fn log_in(server: &Server, name: &str, code: &str) -> Option<By> {
    let (_, pending) = password(server, name, "").await;
    let answer = server.call(&By::Cookie(pending), "POST", "/ui/login/code", format!("code={code}")).await;
    session(&cookies(&answer))
}
