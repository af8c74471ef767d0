//! Second factors: setup, sign-in, loss, and enforcement.

use app::domain::ids::UserId;
use app::domain::second_factor::SecondFactorPolicy;
use app::domain::time::Millis;
use axum::http::{StatusCode, header};
use serde_json::json;

use crate::store::access::factors::StoredTotp;
use crate::tests::harness::totp::{
    code_at_step, current_code, log_in, log_in_with_password, session_actor, set_cookies, set_up_totp, user_with_totp,
};
use crate::tests::harness::{Actor, PASSWORD, TestServer};
use crate::vault::Sealed;

const STEP: Millis = Millis::from_secs(30);

async fn is_logged_in(server: &TestServer, actor: &Actor) -> bool {
    server.get(actor, "/api/session").await.status == StatusCode::OK
}

/// Returns the `Location` of a response.
fn location(response: &crate::tests::harness::TestResponse) -> &str {
    response.headers[header::LOCATION].to_str().expect("ascii")
}

#[tokio::test]
async fn sign_in_with_an_app_requires_password_and_code() {
    let server = TestServer::start().await;
    let ada = user_with_totp(&server, "ada").await;
    let (response, pending) = log_in_with_password(&server, "ada", "").await;
    assert_eq!(location(&response), "/login/code?next=/");
    assert!(session_actor(&pending).is_none() && pending.contains("pending="), "{pending}");
    assert!(!is_logged_in(&server, &Actor::Cookie(pending.clone())).await, "the password alone is not sufficient");

    let pending_browser = Actor::Cookie(pending);
    let page = server.get(&pending_browser, "/login/code?next=/jobs").await.text();
    assert!(page.contains("action=\"/ui/login/code\"") && page.contains("Signing in as ada."), "{page}");
    let form = format!("code={}&next=/jobs", current_code(&server, &ada.secret));
    let response = server.call(&pending_browser, "POST", "/ui/login/code", form).await;
    assert_eq!(location(&response), "/jobs");
    let browser = session_actor(&set_cookies(&response)).expect("a session");
    assert!(is_logged_in(&server, &browser).await);
    let rejected =
        server.call(&Actor::Unauthenticated, "POST", "/ui/login", "name=ada&password=not-the-password").await;
    assert!(location(&rejected).starts_with("/login?"), "after a wrong password no code is requested");
}

#[tokio::test]
async fn code_is_valid_once_and_in_its_time_only() {
    let server = TestServer::start().await;
    let ada = user_with_totp(&server, "ada").await;
    let code = current_code(&server, &ada.secret);
    assert!(log_in(&server, "ada", &code).await.is_some());
    assert!(log_in(&server, "ada", &code).await.is_none(), "a code that was used is rejected");
    server.clock.advance(STEP);
    let (next_code, previous_code) = (code_at_step(&server, &ada.secret, 1), current_code(&server, &ada.secret));
    assert!(log_in(&server, "ada", &next_code).await.is_some(), "clocks may differ by a step");
    assert!(log_in(&server, "ada", &previous_code).await.is_none(), "a code older than the last one is rejected");
    server.clock.advance(Millis::from_secs(600));
    assert!(log_in(&server, "ada", &code_at_step(&server, &ada.secret, 2)).await.is_none());
    assert!(log_in(&server, "ada", &code_at_step(&server, &ada.secret, -2)).await.is_none());
}

#[tokio::test]
async fn ten_recovery_codes_work_once_each() {
    let server = TestServer::start().await;
    let ada = user_with_totp(&server, "ada").await;
    assert_eq!(ada.recovery_codes.len(), 10);
    let typed = ada.recovery_codes[0].to_lowercase().replace('-', "+");
    assert!(log_in(&server, "ada", &typed).await.is_some());
    assert!(log_in(&server, "ada", &typed).await.is_none(), "a recovery code that was used is rejected");
    let view = server.get(&ada.browser, "/api/account/factors").await.expect_status(200);
    assert_eq!(view["recovery_codes_left"], 9);
    let renewed = server.post(&ada.browser, "/api/account/recovery-codes", json!({})).await.expect_status(201);
    assert!(log_in(&server, "ada", &ada.recovery_codes[1]).await.is_none(), "earlier codes are replaced");
    let new_code = renewed["recovery_codes"][0].as_str().expect("text");
    assert!(log_in(&server, "ada", new_code).await.is_some());
}

#[tokio::test]
async fn code_guesses_are_limited_but_known_browsers_can_sign_in() {
    let server = TestServer::start().await;
    let ada = user_with_totp(&server, "ada").await;
    let (_, device) = log_in_with_password(&server, "ada", "").await;
    let form = format!("code={}", current_code(&server, &ada.secret));
    let known = set_cookies(&server.call(&Actor::Cookie(device), "POST", "/ui/login/code", form).await);
    let device = known.split("; ").find(|pair| pair.starts_with("device=")).expect("a device");
    server.clock.advance(STEP);
    let (_, pending) = log_in_with_password(&server, "ada", "").await;
    let pending_browser = Actor::Cookie(pending.clone());
    let mut guesses = 0;
    loop {
        let response = server.call(&pending_browser, "POST", "/ui/login/code", "code=000000").await;
        let page =
            server.get(&Actor::Cookie(format!("{pending}; {}", set_cookies(&response))), "/login/code").await.text();
        if !page.contains("This code is not valid") {
            assert!(page.contains("Try again in"), "{page}");
            break;
        }
        guesses += 1;
        assert!(guesses <= 10, "guesses are limited");
    }
    assert_eq!(guesses, 5);
    let valid_form = format!("code={}", current_code(&server, &ada.secret));
    let rejected = server.call(&pending_browser, "POST", "/ui/login/code", valid_form.clone()).await;
    assert!(session_actor(&set_cookies(&rejected)).is_none(), "the correct code is rejected, too");
    let known = Actor::Cookie(format!("{pending}; {device}"));
    let signed_in = server.call(&known, "POST", "/ui/login/code", valid_form).await;
    assert!(session_actor(&set_cookies(&signed_in)).is_some());
}

#[tokio::test]
async fn pending_sign_in_ends_by_time_password_change_or_disabling() {
    let server = TestServer::start().await;
    let ada = user_with_totp(&server, "ada").await;
    let id = server.user_id("ada").await;
    let finish = async |pending: &str| {
        let form = format!("code={}", current_code(&server, &ada.secret));
        let response = server.call(&Actor::Cookie(pending.to_owned()), "POST", "/ui/login/code", form).await;
        session_actor(&set_cookies(&response)).is_some()
    };
    let (_, late) = log_in_with_password(&server, "ada", "").await;
    server.clock.advance(Millis::from_secs(600));
    assert!(!finish(&late).await);
    assert_eq!(location(&server.get(&Actor::Cookie(late), "/login/code").await), "/login");
    let (_, changed) = log_in_with_password(&server, "ada", "").await;
    let reset = json!({"password": "given-by-an-admin"});
    server.post(&Actor::Admin, &format!("/api/admin/users/{id}/password"), reset).await.expect_status(200);
    assert!(!finish(&changed).await);
    server
        .post(&Actor::Admin, &format!("/api/admin/users/{id}/password"), json!({"password": PASSWORD}))
        .await
        .expect_status(200);
    let (_, disabled) = log_in_with_password(&server, "ada", "").await;
    server
        .call(&Actor::Admin, "PATCH", &format!("/api/admin/users/{id}"), r#"{"disabled": true}"#)
        .await
        .expect_status(200);
    assert!(!finish(&disabled).await);
    for forged in ["pending=", "pending=x.1.2", &format!("pending={id}.99999999999999.00")] {
        assert!(!finish(forged).await, "{forged}");
        assert_eq!(location(&server.get(&Actor::Cookie(forged.to_owned()), "/login/code").await), "/login");
    }
}

#[tokio::test]
async fn factors_are_managed_in_a_browser_with_the_password_only() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "viewer").await;
    let token = server.post(&ada, "/api/account/tokens", json!({"name": "ci"})).await.expect_status(201);
    let secret = token["secret"].as_str().expect("text").to_owned();
    let token_browser = server.log_in("", &secret).await.expect("a session");
    for actor in [&Actor::Token(secret), &token_browser] {
        server.post(actor, "/api/account/totp", json!({})).await.expect_problem(409, "no_password_session");
    }
    server.clock.advance(Millis::from_secs(15 * 60));
    server.post(&ada, "/api/account/totp", json!({})).await.expect_problem(403, "password_needed");
    let prompt = server.call(&ada, "POST", "/ui/account/totp", "").await;
    assert!(prompt.status == StatusCode::FORBIDDEN && prompt.text().contains("name=\"confirm_password\""));
    let setup = server.call(&ada, "POST", "/ui/account/totp", format!("confirm_password={PASSWORD}")).await;
    assert_eq!(location(&setup), "/account/totp");
    let page = server.get(&ada, "/account/totp").await.text();
    let secret_key =
        page.split("<code>").nth(1).and_then(|rest| rest.split('<').next()).expect("the key").replace(' ', "");
    assert!(page.contains("class=\"qr\"") && secret_key.len() == 32, "{page}");
    server.post(&ada, "/api/account/totp/confirm", json!({"code": "000000"})).await.expect_problem(422, "wrong_code");
    assert!(server.log_in("ada", PASSWORD).await.is_some(), "an unconfirmed app is not a factor");

    let form = format!("code={}", current_code(&server, &secret_key));
    let confirmation = server.call(&ada, "POST", "/ui/account/totp/confirm", form).await;
    let Actor::Cookie(cookie) = &ada else { panic!("a browser") };
    let next = Actor::Cookie(format!("{cookie}; {}", set_cookies(&confirmation)));
    let account = server.get(&next, "/account").await.text();
    assert!(account.contains("10 recovery codes left") && account.contains("id=\"recovery-codes\""), "{account}");
    assert!(!server.get(&ada, "/account").await.text().contains("id=\"recovery-codes\""), "shown once");
    server.post(&ada, "/api/account/totp", json!({})).await.expect_problem(409, "factor_exists");
    assert!(server.log_in("ada", PASSWORD).await.is_none());

    server.clock.advance(Millis::from_secs(15 * 60));
    server.call(&ada, "DELETE", "/api/account/totp", "").await.expect_problem(403, "password_needed");
    let form = format!("confirm_password={PASSWORD}");
    let prompt = server.call(&ada, "POST", "/ui/account/totp/remove", form.clone()).await;
    assert_eq!(prompt.status, StatusCode::FORBIDDEN, "the password alone is no longer sufficient");
    assert!(prompt.text().contains("name=\"confirm_code\""), "{}", prompt.text());
    server.post(&ada, "/api/session/proof", json!({"password": PASSWORD})).await.expect_problem(403, "factor_needed");
    let wrong_proof = json!({"password": PASSWORD, "code": "000000"});
    server.post(&ada, "/api/session/proof", wrong_proof).await.expect_problem(422, "wrong_code");
    let form = format!("{form}&confirm_code={}", current_code(&server, &secret_key));
    server.call(&ada, "POST", "/ui/account/totp/remove", form).await;
    assert!(server.log_in("ada", PASSWORD).await.is_some());
    server.call(&ada, "DELETE", "/api/account/totp", "").await.expect_problem(404, "factor_not_found");
}

#[tokio::test]
async fn admin_removes_a_lost_factor() {
    let server = TestServer::start().await;
    user_with_totp(&server, "ada").await;
    let lead = server.add_user("lea", "lead").await;
    let path = format!("/api/admin/users/{}/factors", server.user_id("ada").await);
    server.call(&lead, "DELETE", &path, "").await.expect_problem(403, "permission_denied");
    assert!(server.log_in("ada", PASSWORD).await.is_none());
    let root = server.add_user("root", "admin").await;
    server.clock.advance(Millis::from_secs(15 * 60));
    server.call(&root, "DELETE", &path, "").await.expect_problem(403, "password_needed");
    let detail = server.get(&root, &path.replace("/factors", "")).await.expect_status(200);
    assert!(detail["factors"]["totp_since"].is_string(), "{detail}");
    let form = format!("/ui/users/{}/factors/remove", server.user_id("ada").await);
    server.call(&root, "POST", &form, format!("confirm_password={PASSWORD}")).await;
    let browser = server.log_in("ada", PASSWORD).await.expect("the password is enough again");
    assert_eq!(server.get(&browser, "/api/account/factors").await.expect_status(200)["totp_since"], json!(null));
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_problem(404, "factor_not_found");
}

#[tokio::test]
async fn required_second_factor_is_set_up_first() {
    for (rule, viewer_in) in [(SecondFactorPolicy::Admins, true), (SecondFactorPolicy::Everyone, false)] {
        let server = TestServer::start_with(|policy| policy.accounts.second_factor = rule).await;
        for (name, role) in [("vic", "viewer"), ("ada", "admin")] {
            let body = json!({"name": name, "role": role, "password": PASSWORD});
            server.post(&Actor::Admin, "/api/admin/users", body).await.expect_status(201);
        }
        assert_eq!(server.log_in("vic", PASSWORD).await.is_some(), viewer_in, "{rule:?}");
        let (response, pending) = log_in_with_password(&server, "ada", "").await;
        assert_eq!(location(&response), "/login/enrol?next=/");
        let pending_browser = Actor::Cookie(pending);
        assert!(!is_logged_in(&server, &pending_browser).await);
        let page = server.get(&pending_browser, "/login/enrol?next=/jobs").await.text();
        let key =
            page.split("<code>").nth(1).and_then(|rest| rest.split('<').next()).expect("the key").replace(' ', "");
        let rejected = server.call(&pending_browser, "POST", "/ui/login/enrol", "code=000000&next=/jobs").await;
        assert!(location(&rejected).starts_with("/login/enrol?"), "{}", location(&rejected));
        let form = format!("code={}", current_code(&server, &key));
        let confirmation = server.call(&pending_browser, "POST", "/ui/login/enrol", form).await;
        assert_eq!(location(&confirmation), "/account");
        let browser = Actor::Cookie(set_cookies(&confirmation));
        let account = server.get(&browser, "/account").await.text();
        assert!(account.contains("id=\"recovery-codes\""), "{account}");
        assert!(is_logged_in(&server, &browser).await);
        assert!(server.log_in("ada", PASSWORD).await.is_none(), "sign-in now requires a code");
    }
}

#[tokio::test]
async fn totp_key_is_encrypted_and_recovery_codes_work_without_it() {
    let server = TestServer::start().await;
    let browser = server.add_user("ada", "viewer").await;
    let ada = set_up_totp(&server, browser).await;
    let id = UserId::parse(&server.user_id("ada").await).expect("an id");
    let stored = server
        .app
        .services
        .context
        .store
        .read()
        .await
        .expect("a reader")
        .totp(&id)
        .await
        .expect("readable")
        .expect("a key");
    assert!(!format!("{stored:?}").contains(&ada.secret));
    let codes =
        server.app.services.context.store.read().await.expect("a reader").recovery_codes(&id).await.expect("readable");
    assert!(codes.iter().all(|code| code.digest.len() == 64 && !ada.recovery_codes.contains(&code.digest)));
    // The server has another key for secrets now.
    let lost = StoredTotp { sealed: Sealed { key_id: "another".to_owned(), ..stored.sealed.clone() }, ..stored };
    let write = server.app.services.context.store.write(Box::new(move |tx| {
        let lost = lost.clone();
        Box::pin(async move { tx.put_totp(&lost).await })
    }));
    write.await.expect("written");
    assert!(log_in(&server, "ada", &current_code(&server, &ada.secret)).await.is_none(), "the code cannot be checked");
    assert!(log_in(&server, "ada", &ada.recovery_codes[0]).await.is_some());
}
