//! Second factors: setting one up, logging in with it, losing it, and requiring it.

use app::domain::factor::FactorRule;
use app::domain::ids::UserId;
use app::domain::time::Millis;
use axum::http::{StatusCode, header};
use serde_json::json;

use super::harness::totp::{code, code_in, cookies, enrol, enrolled, log_in, password, session};
use super::harness::{By, PASSWORD, Server};
use crate::store::factors::StoredTotp;
use crate::vault::Sealed;

const STEP: Millis = Millis::seconds(30);

async fn is_in(server: &Server, by: &By) -> bool {
    server.get(by, "/api/session").await.status == StatusCode::OK
}

/// Where an answer leads.
fn location(answer: &super::harness::Answer) -> &str {
    answer.headers[header::LOCATION].to_str().expect("ascii")
}

#[tokio::test]
async fn with_an_app_a_login_takes_the_password_and_then_a_code() {
    let server = Server::start().await;
    let ada = enrolled(&server, "ada").await;
    let (answer, pending) = password(&server, "ada", "").await;
    assert_eq!(location(&answer), "/login/code?next=/");
    assert!(session(&pending).is_none() && pending.contains("pending="), "{pending}");
    assert!(!is_in(&server, &By::Cookie(pending.clone())).await, "the password alone opens nothing");

    let half = By::Cookie(pending);
    let page = server.get(&half, "/login/code?next=/jobs").await.text();
    assert!(page.contains("action=\"/ui/login/code\"") && page.contains("Signing in as ada."), "{page}");
    let form = format!("code={}&next=/jobs", code(&server, &ada.secret));
    let answer = server.call(&half, "POST", "/ui/login/code", form).await;
    assert_eq!(location(&answer), "/jobs");
    let browser = session(&cookies(&answer)).expect("a session");
    assert!(is_in(&server, &browser).await);
    let wrong = server.call(&By::Nobody, "POST", "/ui/login", "name=ada&password=not-the-password").await;
    assert!(location(&wrong).starts_with("/login?"), "a wrong password is not asked for a code");
}

#[tokio::test]
async fn a_code_works_once_and_in_its_time_only() {
    let server = Server::start().await;
    let ada = enrolled(&server, "ada").await;
    let now = code(&server, &ada.secret);
    assert!(log_in(&server, "ada", &now).await.is_some());
    assert!(log_in(&server, "ada", &now).await.is_none(), "a code that was used is refused");
    server.clock.advance(STEP);
    let (ahead, behind) = (code_in(&server, &ada.secret, 1), code(&server, &ada.secret));
    assert!(log_in(&server, "ada", &ahead).await.is_some(), "clocks differ by a step");
    assert!(log_in(&server, "ada", &behind).await.is_none(), "none from before the last one");
    server.clock.advance(Millis::seconds(600));
    assert!(log_in(&server, "ada", &code_in(&server, &ada.secret, 2)).await.is_none());
    assert!(log_in(&server, "ada", &code_in(&server, &ada.secret, -2)).await.is_none());
}

#[tokio::test]
async fn ten_recovery_codes_work_once_each() {
    let server = Server::start().await;
    let ada = enrolled(&server, "ada").await;
    assert_eq!(ada.recovery_codes.len(), 10);
    let typed = ada.recovery_codes[0].to_lowercase().replace('-', "+");
    assert!(log_in(&server, "ada", &typed).await.is_some());
    assert!(log_in(&server, "ada", &typed).await.is_none(), "a recovery code that was used is refused");
    let view = server.get(&ada.browser, "/api/account/factors").await.ok(200);
    assert_eq!(view["recovery_codes_left"], 9);
    let renewed = server.post(&ada.browser, "/api/account/recovery-codes", json!({})).await.ok(201);
    assert!(log_in(&server, "ada", &ada.recovery_codes[1]).await.is_none(), "those from before are replaced");
    let fresh = renewed["recovery_codes"][0].as_str().expect("text");
    assert!(log_in(&server, "ada", fresh).await.is_some());
}

#[tokio::test]
async fn codes_are_not_guessed_without_end_and_a_known_browser_is_not_kept_out() {
    let server = Server::start().await;
    let ada = enrolled(&server, "ada").await;
    let (_, device) = password(&server, "ada", "").await;
    let form = format!("code={}", code(&server, &ada.secret));
    let known = cookies(&server.call(&By::Cookie(device), "POST", "/ui/login/code", form).await);
    let device = known.split("; ").find(|pair| pair.starts_with("device=")).expect("a device");
    server.clock.advance(STEP);
    let (_, pending) = password(&server, "ada", "").await;
    let half = By::Cookie(pending.clone());
    let mut tried = 0;
    loop {
        let answer = server.call(&half, "POST", "/ui/login/code", "code=000000").await;
        let page = server.get(&By::Cookie(format!("{pending}; {}", cookies(&answer))), "/login/code").await.text();
        if !page.contains("This code is not valid") {
            assert!(page.contains("Try again in"), "{page}");
            break;
        }
        tried += 1;
        assert!(tried <= 10, "there is an end");
    }
    assert_eq!(tried, 5);
    let right = format!("code={}", code(&server, &ada.secret));
    let shut = server.call(&half, "POST", "/ui/login/code", right.clone()).await;
    assert!(session(&cookies(&shut)).is_none(), "the right code neither");
    let known = By::Cookie(format!("{pending}; {device}"));
    let let_in = server.call(&known, "POST", "/ui/login/code", right).await;
    assert!(session(&cookies(&let_in)).is_some());
}

#[tokio::test]
async fn a_login_that_waits_for_its_code_ends_with_time_a_new_password_or_the_account() {
    let server = Server::start().await;
    let ada = enrolled(&server, "ada").await;
    let id = server.id_of("ada").await;
    let finish = async |pending: &str| {
        let form = format!("code={}", code(&server, &ada.secret));
        let answer = server.call(&By::Cookie(pending.to_owned()), "POST", "/ui/login/code", form).await;
        session(&cookies(&answer)).is_some()
    };
    let (_, late) = password(&server, "ada", "").await;
    server.clock.advance(Millis::seconds(600));
    assert!(!finish(&late).await);
    assert_eq!(location(&server.get(&By::Cookie(late), "/login/code").await), "/login");
    let (_, changed) = password(&server, "ada", "").await;
    let reset = json!({"password": "given-by-an-admin"});
    server.post(&By::Admin, &format!("/api/admin/users/{id}/password"), reset).await.ok(200);
    assert!(!finish(&changed).await);
    server.post(&By::Admin, &format!("/api/admin/users/{id}/password"), json!({"password": PASSWORD})).await.ok(200);
    let (_, shut) = password(&server, "ada", "").await;
    server.call(&By::Admin, "PATCH", &format!("/api/admin/users/{id}"), r#"{"disabled": true}"#).await.ok(200);
    assert!(!finish(&shut).await);
    for forged in ["pending=", "pending=x.1.2", &format!("pending={id}.99999999999999.00")] {
        assert!(!finish(forged).await, "{forged}");
        assert_eq!(location(&server.get(&By::Cookie(forged.to_owned()), "/login/code").await), "/login");
    }
}

#[tokio::test]
async fn a_factor_is_set_up_and_removed_with_the_password_in_a_browser_only() {
    let server = Server::start().await;
    let ada = server.person("ada", "viewer").await;
    let token = server.post(&ada, "/api/account/tokens", json!({"name": "ci"})).await.ok(201);
    let secret = token["secret"].as_str().expect("text").to_owned();
    let by_token = server.log_in("", &secret).await.expect("a token logs in");
    for by in [&By::Token(secret), &by_token] {
        server.post(by, "/api/account/totp", json!({})).await.problem(409, "no_password_session");
    }
    server.clock.advance(Millis::seconds(15 * 60));
    server.post(&ada, "/api/account/totp", json!({})).await.problem(403, "password_needed");
    let asked = server.call(&ada, "POST", "/ui/account/totp", "").await;
    assert!(asked.status == StatusCode::FORBIDDEN && asked.text().contains("name=\"confirm_password\""));
    let begun = server.call(&ada, "POST", "/ui/account/totp", format!("confirm_password={PASSWORD}")).await;
    assert_eq!(location(&begun), "/account/totp");
    let page = server.get(&ada, "/account/totp").await.text();
    let shown = page.split("<code>").nth(1).and_then(|rest| rest.split('<').next()).expect("the key").replace(' ', "");
    assert!(page.contains("class=\"qr\"") && shown.len() == 32, "{page}");
    server.post(&ada, "/api/account/totp/confirm", json!({"code": "000000"})).await.problem(422, "wrong_code");
    assert!(server.log_in("ada", PASSWORD).await.is_some(), "one that is not confirmed counts for nothing");

    let form = format!("code={}", code(&server, &shown));
    let done = server.call(&ada, "POST", "/ui/account/totp/confirm", form).await;
    let By::Cookie(cookie) = &ada else { panic!("a browser") };
    let next = By::Cookie(format!("{cookie}; {}", cookies(&done)));
    let account = server.get(&next, "/account").await.text();
    assert!(account.contains("10 recovery codes left") && account.contains("id=\"recovery-codes\""), "{account}");
    assert!(!server.get(&ada, "/account").await.text().contains("id=\"recovery-codes\""), "shown once");
    server.post(&ada, "/api/account/totp", json!({})).await.problem(409, "factor_exists");
    assert!(server.log_in("ada", PASSWORD).await.is_none());

    server.clock.advance(Millis::seconds(15 * 60));
    server.call(&ada, "DELETE", "/api/account/totp", "").await.problem(403, "password_needed");
    let form = format!("confirm_password={PASSWORD}");
    let asked = server.call(&ada, "POST", "/ui/account/totp/remove", form.clone()).await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN, "the password alone is not enough any more");
    assert!(asked.text().contains("name=\"confirm_code\""), "{}", asked.text());
    server.post(&ada, "/api/session/proof", json!({"password": PASSWORD})).await.problem(403, "factor_needed");
    let wrong = json!({"password": PASSWORD, "code": "000000"});
    server.post(&ada, "/api/session/proof", wrong).await.problem(422, "wrong_code");
    let form = format!("{form}&confirm_code={}", code(&server, &shown));
    server.call(&ada, "POST", "/ui/account/totp/remove", form).await;
    assert!(server.log_in("ada", PASSWORD).await.is_some());
    server.call(&ada, "DELETE", "/api/account/totp", "").await.problem(404, "factor_not_found");
}

#[tokio::test]
async fn an_admin_removes_the_factor_of_who_has_lost_it() {
    let server = Server::start().await;
    enrolled(&server, "ada").await;
    let lead = server.person("lea", "lead").await;
    let path = format!("/api/admin/users/{}/factors", server.id_of("ada").await);
    server.call(&lead, "DELETE", &path, "").await.problem(403, "permission_denied");
    assert!(server.log_in("ada", PASSWORD).await.is_none());
    let root = server.person("root", "admin").await;
    server.clock.advance(Millis::seconds(15 * 60));
    server.call(&root, "DELETE", &path, "").await.problem(403, "password_needed");
    let detail = server.get(&root, &path.replace("/factors", "")).await.ok(200);
    assert!(detail["factors"]["totp_since"].is_string(), "{detail}");
    let form = format!("/ui/users/{}/factors/remove", server.id_of("ada").await);
    server.call(&root, "POST", &form, format!("confirm_password={PASSWORD}")).await;
    let browser = server.log_in("ada", PASSWORD).await.expect("the password is enough again");
    assert_eq!(server.get(&browser, "/api/account/factors").await.ok(200)["totp_since"], json!(null));
    server.call(&By::Admin, "DELETE", &path, "").await.problem(404, "factor_not_found");
}

#[tokio::test]
async fn where_a_second_factor_is_required_it_is_set_up_before_anything_else() {
    for (rule, viewer_in) in [(FactorRule::Admins, true), (FactorRule::All, false)] {
        let server = Server::start_with(|policy| policy.accounts.second_factor = rule).await;
        for (name, role) in [("vic", "viewer"), ("ada", "admin")] {
            let body = json!({"name": name, "role": role, "password": PASSWORD});
            server.post(&By::Admin, "/api/admin/users", body).await.ok(201);
        }
        assert_eq!(server.log_in("vic", PASSWORD).await.is_some(), viewer_in, "{rule:?}");
        let (answer, pending) = password(&server, "ada", "").await;
        assert_eq!(location(&answer), "/login/enrol?next=/");
        let half = By::Cookie(pending);
        assert!(!is_in(&server, &half).await);
        let page = server.get(&half, "/login/enrol?next=/jobs").await.text();
        let key =
            page.split("<code>").nth(1).and_then(|rest| rest.split('<').next()).expect("the key").replace(' ', "");
        let wrong = server.call(&half, "POST", "/ui/login/enrol", "code=000000&next=/jobs").await;
        assert!(location(&wrong).starts_with("/login/enrol?"), "{}", location(&wrong));
        let form = format!("code={}", code(&server, &key));
        let done = server.call(&half, "POST", "/ui/login/enrol", form).await;
        assert_eq!(location(&done), "/account");
        let browser = By::Cookie(cookies(&done));
        let account = server.get(&browser, "/account").await.text();
        assert!(account.contains("id=\"recovery-codes\""), "{account}");
        assert!(is_in(&server, &browser).await);
        assert!(server.log_in("ada", PASSWORD).await.is_none(), "from now on it takes a code");
    }
}

#[tokio::test]
async fn a_key_is_sealed_at_rest_and_lost_keys_leave_the_recovery_codes() {
    let server = Server::start().await;
    let browser = server.person("ada", "viewer").await;
    let ada = enrol(&server, browser).await;
    let id = UserId::parse(&server.id_of("ada").await).expect("an id");
    let kept = server.app.core.store.read().await.expect("a reader").totp(&id).await.expect("readable").expect("there");
    assert!(!format!("{kept:?}").contains(&ada.secret));
    let codes = server.app.core.store.read().await.expect("a reader").recovery_codes(&id).await.expect("readable");
    assert!(codes.iter().all(|code| code.digest.len() == 64 && !ada.recovery_codes.contains(&code.digest)));
    // The server's key for secrets is another one now.
    let lost = StoredTotp { sealed: Sealed { key_id: "another".to_owned(), ..kept.sealed.clone() }, ..kept };
    let write = server.app.core.store.write(Box::new(move |tx| {
        let lost = lost.clone();
        Box::pin(async move { tx.put_totp(&lost).await })
    }));
    write.await.expect("there");
    assert!(log_in(&server, "ada", &code(&server, &ada.secret)).await.is_none(), "nobody can check it");
    assert!(log_in(&server, "ada", &ada.recovery_codes[0]).await.is_some());
}
