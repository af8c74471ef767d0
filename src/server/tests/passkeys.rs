//! Passkeys: adding them, logging in with them, and what is refused.

use app::domain::factor::FactorRule;
use app::domain::time::Millis;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};

use super::harness::passkey::{Keyed, SoftKey, add, asked, keyed, log_in, options, show};
use super::harness::totp::{self, cookies, password, session};
use super::harness::{Answer, By, PASSWORD, Server};

fn location(answer: &Answer) -> &str {
    answer.headers[header::LOCATION].to_str().expect("ascii")
}

/// The kinds of somebody's notices, the newest first.
async fn notices(server: &Server, by: &By) -> Vec<String> {
    let page = server.get(by, "/api/account/notices").await.ok(200);
    let kind = |notice: &Value| notice["kind"].as_str().expect("text").to_owned();
    page["notices"].as_array().expect("a list").iter().map(kind).collect()
}

/// The details of the entries of this action, the newest first.
async fn recorded(server: &Server, action: &str) -> Vec<Value> {
    let page = server.get(&By::Admin, &format!("/api/audit?action={action}")).await.ok(200);
    page["entries"].as_array().expect("a list").iter().map(|entry| entry["detail"].clone()).collect()
}

/// Gives the password and the second factor once more.
async fn prove(server: &Server, by: &By, code: &str) {
    server.post(by, "/api/session/proof", json!({"password": PASSWORD, "code": code})).await.ok(200);
}

#[tokio::test]
async fn with_a_passkey_a_login_takes_the_password_and_then_the_passkey() {
    let server = Server::start().await;
    let Keyed { browser, mut key, added } = keyed(&server, "ada", 1).await;
    assert_eq!(added["recovery_codes"].as_array().map(Vec::len), Some(10), "the first factor comes with them");
    assert_eq!(added["passkey"]["origin"], "http://localhost:8001");
    assert!(server.log_in("ada", PASSWORD).await.is_none(), "the password alone opens nothing");
    let (answer, pending) = password(&server, "ada", "").await;
    assert_eq!(location(&answer), "/login/code?next=/");
    let options = asked(&server, &pending).await.expect("a passkey is asked for");
    assert_eq!((&options["rpId"], &options["userVerification"]), (&json!("localhost"), &json!("preferred")));
    let answer = show(&server, &pending, &key.get(&options)).await;
    assert_eq!(location(&answer), "/jobs");
    let inside = session(&cookies(&answer)).expect("a session");
    assert_eq!(server.get(&inside, "/api/session").await.ok(200)["name"], "ada");
    let view = server.get(&browser, "/api/account/factors").await.ok(200);
    assert_eq!((&view["passkeys"][0]["name"], &view["totp_since"]), (&json!("Blue key"), &json!(null)));
    assert!(view["passkeys"][0]["last_used_at"].is_string(), "{view}");
    assert!(log_in(&server, "ada", &mut key).await.is_some(), "and once more");
    let code = added["recovery_codes"][0].as_str().expect("text");
    assert!(totp::log_in(&server, "ada", code).await.is_some(), "a recovery code stands in for it");
}

#[tokio::test]
async fn a_signature_opens_one_login_once() {
    let server = Server::start().await;
    let Keyed { mut key, .. } = keyed(&server, "ada", 1).await;
    let (_, first) = password(&server, "ada", "").await;
    server.clock.advance(Millis::seconds(1));
    let (_, second) = password(&server, "ada", "").await;
    let signed = key.get(&asked(&server, &first).await.expect("asked"));
    let elsewhere = show(&server, &second, &signed).await;
    assert!(session(&cookies(&elsewhere)).is_none(), "what another login asked for");
    assert!(session(&cookies(&show(&server, &first, &signed).await)).is_some());
    let again = show(&server, &first, &signed).await;
    assert!(session(&cookies(&again)).is_none(), "what was answered before");
    assert!(location(&again).starts_with("/login/code?"), "{}", location(&again));
    // After a refusal there is another try, which asks for something else.
    let other = asked(&server, &second).await.expect("asked again");
    assert!(session(&cookies(&show(&server, &second, &key.get(&other)).await)).is_some());
}

#[tokio::test]
async fn a_signature_for_another_page_another_challenge_or_by_another_key_is_refused_and_told() {
    let server = Server::start().await;
    let Keyed { browser, mut key, .. } = keyed(&server, "ada", 1).await;
    let mut stranger = SoftKey::new(1);
    let Keyed { key: mut eves, .. } = keyed(&server, "eve", 2).await;
    let (_, pending) = password(&server, "ada", "").await;
    for fault in ["origin", "host", "challenge", "type", "signature", "other", "junk"] {
        let mut asks = asked(&server, &pending).await.expect("asked anew each time");
        let mut signed = match fault {
            "origin" => {
                key.origin = "http://localhost:9999".to_owned();
                let signed = key.get(&asks);
                key.origin = "http://localhost:8001".to_owned();
                signed
            }
            "host" => {
                asks["rpId"] = json!("evil.example");
                key.get(&asks)
            }
            "challenge" => {
                asks["challenge"] = json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
                key.get(&asks)
            }
            // The same name with another key.
            "signature" => stranger.get(&asks),
            "other" => eves.get(&asks),
            _ => key.get(&asks),
        };
        if fault == "type" {
            let made = key.create(&json!({"rp": {"id": "localhost"}, "challenge": asks["challenge"]}));
            signed["response"]["clientDataJSON"] = made["response"]["clientDataJSON"].clone();
        }
        if fault == "junk" {
            signed = json!({"id": "x"});
        }
        let answer = show(&server, &pending, &signed).await;
        assert!(session(&cookies(&answer)).is_none(), "{fault}");
        let told = By::Cookie(format!("{pending}; {}", cookies(&answer)));
        let page = server.get(&told, "/login/code").await.text();
        let shut = page.contains("Try again in");
        assert!(shut || page.contains("This passkey was not accepted"), "{fault}: {page}");
        server.clock.advance(Millis::seconds(60));
        if shut {
            break;
        }
    }
    assert_eq!(notices(&server, &browser).await[0], "wrong_passkey");
    assert_eq!(recorded(&server, "access.login_refused").await.last().expect("some")["reason"], "wrong_passkey");
}

#[tokio::test]
async fn a_counter_that_goes_back_is_refused_and_recorded() {
    let server = Server::start().await;
    let Keyed { browser, mut key, .. } = keyed(&server, "ada", 1).await;
    let mut copy = key.copied();
    for _ in 0..3 {
        assert!(log_in(&server, "ada", &mut key).await.is_some());
    }
    server.clock.advance(Millis::seconds(1));
    assert!(log_in(&server, "ada", &mut copy).await.is_none());
    assert_eq!(notices(&server, &browser).await[0], "passkey_copied");
    assert_eq!(recorded(&server, "access.login_refused").await[0]["reason"], "passkey_copied");
    assert!(log_in(&server, "ada", &mut key).await.is_some(), "its owner goes on");
    // Two logins that are under way at once: the later answer was compared with a counter that is old by then.
    let (_, slow) = password(&server, "ada", "").await;
    let asks = asked(&server, &slow).await.expect("asked");
    server.clock.advance(Millis::seconds(1));
    assert!(log_in(&server, "ada", &mut key).await.is_some());
    server.clock.advance(Millis::seconds(1));
    assert!(session(&cookies(&show(&server, &slow, &key.get(&asks)).await)).is_none());
}

#[tokio::test]
async fn a_key_without_a_counter_is_used_again_and_again() {
    let server = Server::start().await;
    let browser = server.person("ada", "viewer").await;
    let mut key = SoftKey::new(1);
    key.counter = 0;
    add(&server, &browser, &key, "Phone").await.ok(201);
    for _ in 0..2 {
        let (_, pending) = password(&server, "ada", "").await;
        let asks = asked(&server, &pending).await.expect("asked");
        let signed = key.get_uncounted(&asks);
        assert!(session(&cookies(&show(&server, &pending, &signed).await)).is_some());
    }
}

#[tokio::test]
async fn what_is_asked_ends_with_time_and_with_the_passkey() {
    let server = Server::start().await;
    let Keyed { browser, mut key, added } = keyed(&server, "ada", 1).await;
    let (_, late) = password(&server, "ada", "").await;
    let signed = key.get(&asked(&server, &late).await.expect("asked"));
    server.clock.advance(Millis::seconds(600));
    assert!(session(&cookies(&show(&server, &late, &signed).await)).is_none());
    let begun = server.post(&browser, "/api/account/passkeys", json!({})).await.ok(201);
    let made = SoftKey::new(2).create(&begun["options"]);
    server.clock.advance(Millis::seconds(600));
    let confirm = json!({"name": "Late", "credential": made});
    server.post(&browser, "/api/account/passkeys/confirm", confirm).await.problem(409, "passkey_expired");

    let (_, gone) = password(&server, "ada", "").await;
    let signed = key.get(&asked(&server, &gone).await.expect("asked"));
    prove(&server, &browser, added["recovery_codes"][1].as_str().expect("text")).await;
    let path = format!("/api/account/passkeys/{}", added["passkey"]["id"].as_str().expect("text"));
    server.call(&browser, "DELETE", &path, "").await.ok(200);
    server.clock.advance(Millis::seconds(1));
    assert!(session(&cookies(&show(&server, &gone, &signed).await)).is_none(), "the passkey was removed");
    server.call(&browser, "DELETE", &path, "").await.problem(404, "passkey_not_found");
    assert_eq!(notices(&server, &browser).await[0], "wrong_passkey");
    assert!(notices(&server, &browser).await.contains(&"passkey_removed".to_owned()));
    let view = server.get(&browser, "/api/account/factors").await.ok(200);
    assert_eq!(
        (&view["passkeys"], &view["recovery_codes_left"]),
        (&json!([]), &json!(0)),
        "the codes go with the last"
    );
    assert!(server.log_in("ada", PASSWORD).await.is_some());
}

#[tokio::test]
async fn several_passkeys_and_an_app_stand_beside_each_other() {
    let server = Server::start().await;
    let Keyed { browser, mut key, added } = keyed(&server, "ada", 1).await;
    let mut spare = SoftKey::new(2);
    let second = add(&server, &browser, &spare, "Spare").await.ok(201);
    assert_eq!(second["recovery_codes"], json!([]), "those from before go on working");
    let begun = server.post(&browser, "/api/account/passkeys", json!({})).await.ok(201);
    let excluded = begun["options"]["excludeCredentials"].as_array().expect("a list");
    assert_eq!(excluded.len(), 2, "a key is not added twice");
    let again = json!({"name": "Again", "credential": spare.create(&begun["options"])});
    let refused = server.post(&browser, "/api/account/passkeys/confirm", again).await;
    assert!(["passkey_exists", "wrong_passkey"].contains(&refused.json()["code"].as_str().expect("a problem")));
    let app = totp::enrol(&server, browser.clone()).await;
    assert!(app.recovery_codes.is_empty());
    assert!(log_in(&server, "ada", &mut key).await.is_some());
    assert!(log_in(&server, "ada", &mut spare).await.is_some());
    assert!(totp::log_in(&server, "ada", &totp::code(&server, &app.secret)).await.is_some());
    prove(&server, &browser, added["recovery_codes"][1].as_str().expect("text")).await;
    let path = format!("/api/account/passkeys/{}", added["passkey"]["id"].as_str().expect("text"));
    server.call(&browser, "DELETE", &path, "").await.ok(200);
    assert!(log_in(&server, "ada", &mut key).await.is_none());
    let code = added["recovery_codes"][0].as_str().expect("text");
    assert!(totp::log_in(&server, "ada", code).await.is_some(), "the codes stay with the others");
    assert_eq!(recorded(&server, "access.factor_removed").await[0], json!({"factor": "passkey", "name": "Blue key"}));
}

#[tokio::test]
async fn nobody_adds_a_passkey_of_somebody_else_or_for_somebody_else() {
    let server = Server::start().await;
    let Keyed { key, .. } = keyed(&server, "ada", 1).await;
    let eve = server.person("eve", "viewer").await;
    add(&server, &eve, &key, "Mine").await.problem(409, "passkey_exists");
    let other = server.log_in("eve", PASSWORD).await.expect("eve has no factor");
    let begun = server.post(&eve, "/api/account/passkeys", json!({})).await.ok(201);
    let confirm = json!({"name": "Mine", "credential": SoftKey::new(3).create(&begun["options"])});
    let refused = server.post(&other, "/api/account/passkeys/confirm", confirm.clone()).await;
    refused.problem(409, "passkey_expired");
    server.post(&eve, "/api/account/passkeys/confirm", confirm.clone()).await.ok(201);
    server.post(&eve, "/api/account/passkeys/confirm", confirm).await.problem(409, "passkey_expired");
    for name in ["", "a\u{202e}b"] {
        let nameless = json!({"name": name, "credential": {}});
        server.post(&eve, "/api/account/passkeys/confirm", nameless).await.problem(422, "out_of_range");
    }
    let token = server.post(&eve, "/api/account/tokens", json!({"name": "ci"})).await.ok(201);
    let token = By::Token(token["secret"].as_str().expect("text").to_owned());
    server.post(&token, "/api/account/passkeys", json!({})).await.problem(409, "no_password_session");
    server.clock.advance(Millis::seconds(15 * 60));
    server.post(&eve, "/api/account/passkeys", json!({})).await.problem(403, "password_needed");
}

/// The answer under this host.
async fn under(server: &Server, by: &By, host: &str, method: &str, path: &str) -> (StatusCode, String) {
    let By::Cookie(cookie) = by else { panic!("a browser") };
    let request = Request::builder().method(method).uri(path).header(header::HOST, host).header(header::COOKIE, cookie);
    let answer = server.send(request.body(Body::from("{}")).expect("a request")).await;
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn there_are_none_over_plain_http_or_at_an_ip_address_and_the_page_says_so() {
    let server = Server::start().await;
    let ada = server.person("ada", "viewer").await;
    for (host, why, said) in [
        ("tuner.example:8001", "insecure", "Passkeys work over HTTPS only."),
        ("192.0.2.7:8001", "no_name", "not an IP address"),
    ] {
        let (status, problem) = under(&server, &ada, host, "POST", "/api/account/passkeys").await;
        let problem: Value = serde_json::from_str(&problem).expect("a problem");
        assert_eq!(
            (status, &problem["code"], &problem["why"]),
            (StatusCode::CONFLICT, &json!("no_passkeys_here"), &json!(why))
        );
        let (_, page) = under(&server, &ada, host, "GET", "/account").await;
        assert!(page.contains(said) && !page.contains("action=\"/ui/account/passkeys\""), "{host}: {page}");
    }
    let page = server.get(&ada, "/account").await.text();
    assert!(page.contains("action=\"/ui/account/passkeys\""), "{page}");
}

#[tokio::test]
async fn a_passkey_works_where_it_was_made_and_the_login_says_where() {
    let server = Server::start().await;
    let Keyed { added, .. } = keyed(&server, "ada", 1).await;
    let form = format!("name=ada&password={PASSWORD}");
    let request = Request::post("/ui/login").header(header::HOST, "localhost:9999");
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let answer = server.send(request.body(Body::from(form)).expect("a request")).await;
    let cookie = answer.headers()[header::SET_COOKIE].to_str().expect("ascii").split(';').next().expect("a cookie");
    let page = under(&server, &By::Cookie(cookie.to_owned()), "localhost:9999", "GET", "/login/code").await.1;
    assert!(page.contains("Your passkeys work at http://localhost:8001, not here."), "{page}");
    assert!(options(&page).is_none() && page.contains("action=\"/ui/login/code\""), "{page}");
    let code = added["recovery_codes"][0].as_str().expect("text");
    let form = format!("code={code}");
    let answer = server.call(&By::Cookie(cookie.to_owned()), "POST", "/ui/login/code", form).await;
    assert!(session(&cookies(&answer)).is_some());
}

#[tokio::test]
async fn whoever_has_a_passkey_is_not_let_in_by_setting_up_an_app() {
    let server = Server::start_with(|policy| policy.accounts.second_factor = FactorRule::All).await;
    let body = json!({"name": "ada", "role": "viewer", "password": PASSWORD});
    server.post(&By::Admin, "/api/admin/users", body).await.ok(201);
    let (_, pending) = password(&server, "ada", "").await;
    let half = By::Cookie(pending);
    let page = server.get(&half, "/login/enrol").await.text();
    let secret = page.split("<code>").nth(1).and_then(|rest| rest.split('<').next()).expect("the key").replace(' ', "");
    let done = server.call(&half, "POST", "/ui/login/enrol", format!("code={}", totp::code(&server, &secret))).await;
    let browser = session(&cookies(&done)).expect("a session");
    // An app that was begun, and a passkey that takes its place.
    add(&server, &browser, &SoftKey::new(1), "Blue key").await.ok(201);
    server.call(&browser, "DELETE", "/api/account/totp", "").await.ok(200);
    let begun = server.post(&browser, "/api/account/totp", json!({})).await.ok(201);
    let (answer, pending) = password(&server, "ada", "").await;
    assert_eq!(location(&answer), "/login/code?next=/");
    let half = By::Cookie(pending);
    assert_eq!(location(&server.get(&half, "/login/enrol").await), "/login", "its key is shown to nobody");
    let form = format!("code={}", totp::code(&server, begun["secret"].as_str().expect("text")));
    let tried = server.call(&half, "POST", "/ui/login/enrol", form).await;
    assert!(session(&cookies(&tried)).is_none());
}

#[tokio::test]
async fn an_admin_sees_who_has_a_second_factor_and_removes_all_of_it() {
    let server = Server::start().await;
    let Keyed { browser, .. } = keyed(&server, "ada", 1).await;
    totp::enrol(&server, browser.clone()).await;
    server.person("eve", "viewer").await;
    let page = server.get(&By::Admin, "/api/admin/users").await.ok(200);
    let has = |name: &str| {
        let users = page["users"].as_array().expect("a list");
        users.iter().find(|user| user["name"] == name).map(|user| user["second_factor"].clone())
    };
    assert_eq!((has("ada"), has("eve")), (Some(json!(true)), Some(json!(false))));
    let path = format!("/api/admin/users/{}/factors", server.id_of("ada").await);
    let detail = server.get(&By::Admin, &path.replace("/factors", "")).await.ok(200);
    assert_eq!(detail["factors"]["passkeys"][0]["name"], "Blue key");
    server.call(&By::Admin, "DELETE", &path, "").await.ok(200);
    assert!(server.log_in("ada", PASSWORD).await.is_some(), "the password is enough again");
    assert_eq!(notices(&server, &browser).await[0], "factors_removed");
    let expected = json!({"factor": "all", "totp": true, "passkeys": ["Blue key"]});
    assert_eq!(recorded(&server, "access.factor_removed").await[0], expected);
    server.call(&By::Admin, "DELETE", &path, "").await.problem(404, "factor_not_found");
}

#[tokio::test]
async fn the_pages_add_a_passkey_and_remove_it() {
    let server = Server::start().await;
    let ada = server.person("ada", "viewer").await;
    server.clock.advance(Millis::seconds(15 * 60));
    let asked = server.call(&ada, "POST", "/ui/account/passkeys", "").await;
    assert!(asked.status == StatusCode::FORBIDDEN && asked.text().contains("name=\"confirm_password\""));
    let begun = server.call(&ada, "POST", "/ui/account/passkeys", format!("confirm_password={PASSWORD}")).await;
    assert_eq!(location(&begun), "/account/passkeys/new");
    let page = server.get(&ada, "/account/passkeys/new").await.text();
    assert!(page.contains("const bytes = (text) => "), "the script as it is written: {page}");
    let key = SoftKey::new(1);
    let made = key.create(&options(&page).expect("the options")).to_string();
    let form = format!("name=Blue+key&credential={made}");
    let done = server.call(&ada, "POST", "/ui/account/passkeys/confirm", form).await;
    assert_eq!(location(&done), "/account");
    let By::Cookie(cookie) = &ada else { panic!("a browser") };
    let next = By::Cookie(format!("{cookie}; {}", cookies(&done)));
    let account = server.get(&next, "/account").await.text();
    assert!(account.contains("id=\"recovery-codes\"") && account.contains("Blue key"), "{account}");
    let id = server.get(&ada, "/api/account/factors").await.ok(200)["passkeys"][0]["id"].clone();
    let remove = format!("/ui/account/passkeys/{}/remove", id.as_str().expect("text"));
    assert!(account.contains(&remove));
    server.call(&ada, "POST", &remove, "").await;
    assert!(server.log_in("ada", PASSWORD).await.is_some());
    let gone = server.get(&ada, "/account/passkeys/new").await;
    assert_eq!(gone.status, StatusCode::CONFLICT, "nothing is being added");
}
