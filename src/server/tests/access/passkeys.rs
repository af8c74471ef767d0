//! Passkeys: registration, sign-in, and rejections.

use app::domain::second_factor::SecondFactorPolicy;
use app::domain::time::Millis;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};

use crate::tests::harness::passkey::{
    PasskeyUser, SoftPasskey, add_passkey, log_in, login_options, passkey_options, send_assertion, user_with_passkey,
};
use crate::tests::harness::totp;
use crate::tests::harness::totp::{log_in_with_password, session_actor, set_cookies};
use crate::tests::harness::{Actor, PASSWORD, TestResponse, TestServer};

fn location(response: &TestResponse) -> &str {
    response.headers[header::LOCATION].to_str().expect("ascii")
}

/// Returns the kinds of a user's notices, newest first.
async fn notices(server: &TestServer, actor: &Actor) -> Vec<String> {
    let page = server.get(actor, "/api/account/notices").await.expect_status(200);
    let kind = |notice: &Value| notice["kind"].as_str().expect("text").to_owned();
    page["notices"].as_array().expect("a list").iter().map(kind).collect()
}

/// Returns the details of the entries with this action, newest first.
async fn recorded_details(server: &TestServer, action: &str) -> Vec<Value> {
    let page = server.get(&Actor::Admin, &format!("/api/audit?action={action}")).await.expect_status(200);
    page["entries"].as_array().expect("a list").iter().map(|entry| entry["detail"].clone()).collect()
}

/// Confirms the password and the second factor again.
async fn reauthenticate(server: &TestServer, actor: &Actor, code: &str) {
    server.post(actor, "/api/session/proof", json!({"password": PASSWORD, "code": code})).await.expect_status(200);
}

#[tokio::test]
async fn sign_in_with_a_passkey_requires_password_and_passkey() {
    let server = TestServer::start().await;
    let PasskeyUser { browser, mut key, added } = user_with_passkey(&server, "ada", 1).await;
    assert_eq!(added["recovery_codes"].as_array().map(Vec::len), Some(10), "the first factor adds recovery codes");
    assert_eq!(added["passkey"]["origin"], "http://localhost:8001");
    assert!(server.log_in("ada", PASSWORD).await.is_none(), "the password alone is not sufficient");
    let (response, pending) = log_in_with_password(&server, "ada", "").await;
    assert_eq!(location(&response), "/login/code?next=/");
    let options = login_options(&server, &pending).await.expect("passkey options");
    assert_eq!((&options["rpId"], &options["userVerification"]), (&json!("localhost"), &json!("preferred")));
    let response = send_assertion(&server, &pending, &key.get(&options)).await;
    assert_eq!(location(&response), "/jobs");
    let signed_in_browser = session_actor(&set_cookies(&response)).expect("a session");
    assert_eq!(server.get(&signed_in_browser, "/api/session").await.expect_status(200)["name"], "ada");
    let view = server.get(&browser, "/api/account/factors").await.expect_status(200);
    assert_eq!((&view["passkeys"][0]["name"], &view["totp_since"]), (&json!("Blue key"), &json!(null)));
    assert!(view["passkeys"][0]["last_used_at"].is_string(), "{view}");
    assert!(log_in(&server, "ada", &mut key).await.is_some(), "the passkey works again");
    let code = added["recovery_codes"][0].as_str().expect("text");
    assert!(totp::log_in(&server, "ada", code).await.is_some(), "a recovery code replaces it");
}

#[tokio::test]
async fn assertion_is_valid_for_one_sign_in() {
    let server = TestServer::start().await;
    let PasskeyUser { mut key, .. } = user_with_passkey(&server, "ada", 1).await;
    let (_, first) = log_in_with_password(&server, "ada", "").await;
    server.clock.advance(Millis::from_secs(1));
    let (_, second) = log_in_with_password(&server, "ada", "").await;
    let signed = key.get(&login_options(&server, &first).await.expect("passkey options"));
    let other = send_assertion(&server, &second, &signed).await;
    assert!(session_actor(&set_cookies(&other)).is_none(), "the challenge belongs to another sign-in");
    assert!(session_actor(&set_cookies(&send_assertion(&server, &first, &signed).await)).is_some());
    let again = send_assertion(&server, &first, &signed).await;
    assert!(session_actor(&set_cookies(&again)).is_none(), "the challenge was used before");
    assert!(location(&again).starts_with("/login/code?"), "{}", location(&again));
    // After a rejection the user can try again with a new challenge.
    let other = login_options(&server, &second).await.expect("new passkey options");
    assert!(session_actor(&set_cookies(&send_assertion(&server, &second, &key.get(&other)).await)).is_some());
}

#[tokio::test]
async fn invalid_assertions_are_rejected_and_noticed() {
    let server = TestServer::start().await;
    let PasskeyUser { browser, mut key, .. } = user_with_passkey(&server, "ada", 1).await;
    let mut forged_passkey = SoftPasskey::new(1);
    let PasskeyUser { key: mut other_key, .. } = user_with_passkey(&server, "eve", 2).await;
    let (_, pending) = log_in_with_password(&server, "ada", "").await;
    for fault in ["origin", "host", "challenge", "type", "signature", "other", "junk"] {
        let mut options = login_options(&server, &pending).await.expect("new passkey options each time");
        let mut signed = match fault {
            "origin" => {
                key.origin = "http://localhost:9999".to_owned();
                let signed = key.get(&options);
                key.origin = "http://localhost:8001".to_owned();
                signed
            }
            "host" => {
                options["rpId"] = json!("evil.example");
                key.get(&options)
            }
            "challenge" => {
                options["challenge"] = json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
                key.get(&options)
            }
            // The same name with another key.
            "signature" => forged_passkey.get(&options),
            "other" => other_key.get(&options),
            _ => key.get(&options),
        };
        if fault == "type" {
            let created = key.create(&json!({"rp": {"id": "localhost"}, "challenge": options["challenge"]}));
            signed["response"]["clientDataJSON"] = created["response"]["clientDataJSON"].clone();
        }
        if fault == "junk" {
            signed = json!({"id": "x"});
        }
        let response = send_assertion(&server, &pending, &signed).await;
        assert!(session_actor(&set_cookies(&response)).is_none(), "{fault}");
        let actor = Actor::Cookie(format!("{pending}; {}", set_cookies(&response)));
        let page = server.get(&actor, "/login/code").await.text();
        let is_limited = page.contains("Try again in");
        assert!(is_limited || page.contains("This passkey was not accepted"), "{fault}: {page}");
        server.clock.advance(Millis::from_secs(60));
        if is_limited {
            break;
        }
    }
    assert_eq!(notices(&server, &browser).await[0], "wrong_passkey");
    assert_eq!(
        recorded_details(&server, "access.login_failed").await.last().expect("an entry")["reason"],
        "wrong_passkey"
    );
}

#[tokio::test]
async fn decreasing_counter_is_rejected_and_recorded() {
    let server = TestServer::start().await;
    let PasskeyUser { browser, mut key, .. } = user_with_passkey(&server, "ada", 1).await;
    let mut copy = key.cloned_key();
    for _ in 0..3 {
        assert!(log_in(&server, "ada", &mut key).await.is_some());
    }
    server.clock.advance(Millis::from_secs(1));
    assert!(log_in(&server, "ada", &mut copy).await.is_none());
    assert_eq!(notices(&server, &browser).await[0], "passkey_copied");
    assert_eq!(recorded_details(&server, "access.login_failed").await[0]["reason"], "passkey_copied");
    assert!(log_in(&server, "ada", &mut key).await.is_some(), "its owner can sign in");
    // Two concurrent sign-ins: the later response was compared with a counter that is outdated by then.
    let (_, slow) = log_in_with_password(&server, "ada", "").await;
    let options = login_options(&server, &slow).await.expect("passkey options");
    server.clock.advance(Millis::from_secs(1));
    assert!(log_in(&server, "ada", &mut key).await.is_some());
    server.clock.advance(Millis::from_secs(1));
    assert!(session_actor(&set_cookies(&send_assertion(&server, &slow, &key.get(&options)).await)).is_none());
}

#[tokio::test]
async fn passkey_without_a_counter_works_repeatedly() {
    let server = TestServer::start().await;
    let browser = server.add_user("ada", "viewer").await;
    let mut key = SoftPasskey::new(1);
    key.counter = 0;
    add_passkey(&server, &browser, &key, "Phone").await.expect_status(201);
    for _ in 0..2 {
        let (_, pending) = log_in_with_password(&server, "ada", "").await;
        let options = login_options(&server, &pending).await.expect("passkey options");
        let signed = key.get_without_counter(&options);
        assert!(session_actor(&set_cookies(&send_assertion(&server, &pending, &signed).await)).is_some());
    }
}

#[tokio::test]
async fn challenge_expires_and_ends_with_the_passkey() {
    let server = TestServer::start().await;
    let PasskeyUser { browser, mut key, added } = user_with_passkey(&server, "ada", 1).await;
    let (_, late) = log_in_with_password(&server, "ada", "").await;
    let signed = key.get(&login_options(&server, &late).await.expect("passkey options"));
    server.clock.advance(Millis::from_secs(600));
    assert!(session_actor(&set_cookies(&send_assertion(&server, &late, &signed).await)).is_none());
    let setup = server.post(&browser, "/api/account/passkeys", json!({})).await.expect_status(201);
    let credential = SoftPasskey::new(2).create(&setup["options"]);
    server.clock.advance(Millis::from_secs(600));
    let confirm = json!({"name": "Late", "credential": credential});
    server.post(&browser, "/api/account/passkeys/confirm", confirm).await.expect_problem(409, "passkey_expired");

    let (_, pending_login) = log_in_with_password(&server, "ada", "").await;
    let signed = key.get(&login_options(&server, &pending_login).await.expect("passkey options"));
    reauthenticate(&server, &browser, added["recovery_codes"][1].as_str().expect("text")).await;
    let path = format!("/api/account/passkeys/{}", added["passkey"]["id"].as_str().expect("text"));
    server.call(&browser, "DELETE", &path, "").await.expect_status(200);
    server.clock.advance(Millis::from_secs(1));
    assert!(
        session_actor(&set_cookies(&send_assertion(&server, &pending_login, &signed).await)).is_none(),
        "the passkey was removed"
    );
    server.call(&browser, "DELETE", &path, "").await.expect_problem(404, "passkey_not_found");
    assert_eq!(notices(&server, &browser).await[0], "wrong_passkey");
    assert!(notices(&server, &browser).await.contains(&"passkey_removed".to_owned()));
    let view = server.get(&browser, "/api/account/factors").await.expect_status(200);
    assert_eq!(
        (&view["passkeys"], &view["recovery_codes_left"]),
        (&json!([]), &json!(0)),
        "the codes are deleted with the last factor"
    );
    assert!(server.log_in("ada", PASSWORD).await.is_some());
}

#[tokio::test]
async fn several_passkeys_and_an_app_coexist() {
    let server = TestServer::start().await;
    let PasskeyUser { browser, mut key, added } = user_with_passkey(&server, "ada", 1).await;
    let mut spare = SoftPasskey::new(2);
    let second = add_passkey(&server, &browser, &spare, "Spare").await.expect_status(201);
    assert_eq!(second["recovery_codes"], json!([]), "earlier codes stay valid");
    let setup = server.post(&browser, "/api/account/passkeys", json!({})).await.expect_status(201);
    let excluded = setup["options"]["excludeCredentials"].as_array().expect("a list");
    assert_eq!(excluded.len(), 2, "a key is not added twice");
    let again = json!({"name": "Again", "credential": spare.create(&setup["options"])});
    let rejected = server.post(&browser, "/api/account/passkeys/confirm", again).await;
    assert!(["passkey_exists", "wrong_passkey"].contains(&rejected.json()["code"].as_str().expect("a problem")));
    let app = totp::set_up_totp(&server, browser.clone()).await;
    assert!(app.recovery_codes.is_empty());
    assert!(log_in(&server, "ada", &mut key).await.is_some());
    assert!(log_in(&server, "ada", &mut spare).await.is_some());
    assert!(totp::log_in(&server, "ada", &totp::current_code(&server, &app.secret)).await.is_some());
    reauthenticate(&server, &browser, added["recovery_codes"][1].as_str().expect("text")).await;
    let path = format!("/api/account/passkeys/{}", added["passkey"]["id"].as_str().expect("text"));
    server.call(&browser, "DELETE", &path, "").await.expect_status(200);
    assert!(log_in(&server, "ada", &mut key).await.is_none());
    let code = added["recovery_codes"][0].as_str().expect("text");
    assert!(totp::log_in(&server, "ada", code).await.is_some(), "the codes stay valid while another factor exists");
    assert_eq!(
        recorded_details(&server, "access.factor_removed").await[0],
        json!({"factor": "passkey", "name": "Blue key"})
    );
}

#[tokio::test]
async fn passkeys_are_added_by_their_owner_only() {
    let server = TestServer::start().await;
    let PasskeyUser { key, .. } = user_with_passkey(&server, "ada", 1).await;
    let eve = server.add_user("eve", "viewer").await;
    add_passkey(&server, &eve, &key, "Mine").await.expect_problem(409, "passkey_exists");
    let other = server.log_in("eve", PASSWORD).await.expect("eve has no factor");
    let setup = server.post(&eve, "/api/account/passkeys", json!({})).await.expect_status(201);
    let confirm = json!({"name": "Mine", "credential": SoftPasskey::new(3).create(&setup["options"])});
    let rejected = server.post(&other, "/api/account/passkeys/confirm", confirm.clone()).await;
    rejected.expect_problem(409, "passkey_expired");
    server.post(&eve, "/api/account/passkeys/confirm", confirm.clone()).await.expect_status(201);
    server.post(&eve, "/api/account/passkeys/confirm", confirm).await.expect_problem(409, "passkey_expired");
    for name in ["", "a\u{202e}b"] {
        let nameless = json!({"name": name, "credential": {}});
        server.post(&eve, "/api/account/passkeys/confirm", nameless).await.expect_problem(422, "out_of_range");
    }
    let token = server.post(&eve, "/api/account/tokens", json!({"name": "ci"})).await.expect_status(201);
    let token = Actor::Token(token["secret"].as_str().expect("text").to_owned());
    server.post(&token, "/api/account/passkeys", json!({})).await.expect_problem(409, "no_password_session");
    server.clock.advance(Millis::from_secs(15 * 60));
    server.post(&eve, "/api/account/passkeys", json!({})).await.expect_problem(403, "password_needed");
}

/// Sends a request with this host name; returns the status and the text of the response.
async fn call_with_host(
    server: &TestServer,
    actor: &Actor,
    host: &str,
    method: &str,
    path: &str,
) -> (StatusCode, String) {
    let Actor::Cookie(cookie) = actor else { panic!("a browser") };
    let request = Request::builder().method(method).uri(path).header(header::HOST, host).header(header::COOKIE, cookie);
    let response = server.send(request.body(Body::from("{}")).expect("a request")).await;
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn passkeys_require_https_and_a_host_name() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "viewer").await;
    for (host, reason, sentence) in [
        ("tuner.example:8001", "insecure", "Passkeys work over HTTPS only."),
        ("192.0.2.7:8001", "no_name", "not an IP address"),
    ] {
        let (status, problem) = call_with_host(&server, &ada, host, "POST", "/api/account/passkeys").await;
        let problem: Value = serde_json::from_str(&problem).expect("a problem");
        assert_eq!(
            (status, &problem["code"], &problem["why"]),
            (StatusCode::CONFLICT, &json!("passkeys_unavailable"), &json!(reason))
        );
        let (_, page) = call_with_host(&server, &ada, host, "GET", "/account").await;
        assert!(page.contains(sentence) && !page.contains("action=\"/ui/account/passkeys\""), "{host}: {page}");
    }
    let page = server.get(&ada, "/account").await.text();
    assert!(page.contains("action=\"/ui/account/passkeys\""), "{page}");
}

#[tokio::test]
async fn passkey_works_at_its_host_only_and_sign_in_names_it() {
    let server = TestServer::start().await;
    let PasskeyUser { added, .. } = user_with_passkey(&server, "ada", 1).await;
    let form = format!("name=ada&password={PASSWORD}");
    let request = Request::post("/ui/login").header(header::HOST, "localhost:9999");
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let response = server.send(request.body(Body::from(form)).expect("a request")).await;
    let cookie = response.headers()[header::SET_COOKIE].to_str().expect("ascii").split(';').next().expect("a cookie");
    let page =
        call_with_host(&server, &Actor::Cookie(cookie.to_owned()), "localhost:9999", "GET", "/login/code").await.1;
    assert!(page.contains("Your passkeys work at http://localhost:8001, not here."), "{page}");
    assert!(passkey_options(&page).is_none() && page.contains("action=\"/ui/login/code\""), "{page}");
    let code = added["recovery_codes"][0].as_str().expect("text");
    let form = format!("code={code}");
    let response = server.call(&Actor::Cookie(cookie.to_owned()), "POST", "/ui/login/code", form).await;
    assert!(session_actor(&set_cookies(&response)).is_some());
}

#[tokio::test]
async fn required_factor_cannot_be_replaced_by_setting_up_an_app() {
    let server = TestServer::start_with(|policy| policy.accounts.second_factor = SecondFactorPolicy::Everyone).await;
    let body = json!({"name": "ada", "role": "viewer", "password": PASSWORD});
    server.post(&Actor::Admin, "/api/admin/users", body).await.expect_status(201);
    let (_, pending) = log_in_with_password(&server, "ada", "").await;
    let pending_browser = Actor::Cookie(pending);
    let page = server.get(&pending_browser, "/login/enrol").await.text();
    let secret = page.split("<code>").nth(1).and_then(|rest| rest.split('<').next()).expect("the key").replace(' ', "");
    let confirmation = server
        .call(&pending_browser, "POST", "/ui/login/enrol", format!("code={}", totp::current_code(&server, &secret)))
        .await;
    let browser = session_actor(&set_cookies(&confirmation)).expect("a session");
    // The setup of an app is started, and a passkey is added instead.
    add_passkey(&server, &browser, &SoftPasskey::new(1), "Blue key").await.expect_status(201);
    server.call(&browser, "DELETE", "/api/account/totp", "").await.expect_status(200);
    let setup = server.post(&browser, "/api/account/totp", json!({})).await.expect_status(201);
    let (response, pending) = log_in_with_password(&server, "ada", "").await;
    assert_eq!(location(&response), "/login/code?next=/");
    let pending_browser = Actor::Cookie(pending);
    assert_eq!(
        location(&server.get(&pending_browser, "/login/enrol").await),
        "/login",
        "the key of the app is never shown"
    );
    let form = format!("code={}", totp::current_code(&server, setup["secret"].as_str().expect("text")));
    let tried = server.call(&pending_browser, "POST", "/ui/login/enrol", form).await;
    assert!(session_actor(&set_cookies(&tried)).is_none());
}

#[tokio::test]
async fn admin_sees_and_removes_all_second_factors() {
    let server = TestServer::start().await;
    let PasskeyUser { browser, .. } = user_with_passkey(&server, "ada", 1).await;
    totp::set_up_totp(&server, browser.clone()).await;
    server.add_user("eve", "viewer").await;
    let page = server.get(&Actor::Admin, "/api/admin/users").await.expect_status(200);
    let has_factor = |name: &str| {
        let users = page["users"].as_array().expect("a list");
        users.iter().find(|user| user["name"] == name).map(|user| user["second_factor"].clone())
    };
    assert_eq!((has_factor("ada"), has_factor("eve")), (Some(json!(true)), Some(json!(false))));
    let path = format!("/api/admin/users/{}/factors", server.user_id("ada").await);
    let detail = server.get(&Actor::Admin, &path.replace("/factors", "")).await.expect_status(200);
    assert_eq!(detail["factors"]["passkeys"][0]["name"], "Blue key");
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_status(200);
    assert!(server.log_in("ada", PASSWORD).await.is_some(), "the password is enough again");
    assert_eq!(notices(&server, &browser).await[0], "factors_removed");
    let expected = json!({"factor": "all", "totp": true, "passkeys": ["Blue key"]});
    assert_eq!(recorded_details(&server, "access.factor_removed").await[0], expected);
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_problem(404, "factor_not_found");
}

#[tokio::test]
async fn pages_add_and_remove_a_passkey() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "viewer").await;
    server.clock.advance(Millis::from_secs(15 * 60));
    let prompt = server.call(&ada, "POST", "/ui/account/passkeys", "").await;
    assert!(prompt.status == StatusCode::FORBIDDEN && prompt.text().contains("name=\"confirm_password\""));
    let setup = server.call(&ada, "POST", "/ui/account/passkeys", format!("confirm_password={PASSWORD}")).await;
    assert_eq!(location(&setup), "/account/passkeys/new");
    let page = server.get(&ada, "/account/passkeys/new").await.text();
    assert!(page.contains("const bytes = (text) => "), "the script is not escaped: {page}");
    let key = SoftPasskey::new(1);
    let credential = key.create(&passkey_options(&page).expect("the options")).to_string();
    let form = format!("name=Blue+key&credential={credential}");
    let confirmation = server.call(&ada, "POST", "/ui/account/passkeys/confirm", form).await;
    assert_eq!(location(&confirmation), "/account");
    let Actor::Cookie(cookie) = &ada else { panic!("a browser") };
    let next = Actor::Cookie(format!("{cookie}; {}", set_cookies(&confirmation)));
    let account = server.get(&next, "/account").await.text();
    assert!(account.contains("id=\"recovery-codes\"") && account.contains("Blue key"), "{account}");
    let id = server.get(&ada, "/api/account/factors").await.expect_status(200)["passkeys"][0]["id"].clone();
    let remove = format!("/ui/account/passkeys/{}/remove", id.as_str().expect("text"));
    assert!(account.contains(&remove));
    server.call(&ada, "POST", &remove, "").await;
    assert!(server.log_in("ada", PASSWORD).await.is_some());
    let response = server.get(&ada, "/account/passkeys/new").await;
    assert_eq!(response.status, StatusCode::CONFLICT, "nothing is being added");
}
