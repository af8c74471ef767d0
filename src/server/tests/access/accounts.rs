//! Users, passwords, tokens and sessions, and the owners of jobs.

use app::domain::access::Permissions;
use app::domain::time::Millis;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::state::AuthMode;
use crate::service::access::{BrowserInfo, LoginOutcome};
use crate::service::auth_grant::Credential;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::Caller;
use crate::tests::harness::{ADMIN, Actor, PASSWORD, TestServer};
use crate::tokens::digest;

/// Creates an API token; returns its view and the token.
async fn token(server: &TestServer, actor: &Actor, body: Value) -> (Value, Actor) {
    let created = server.post(actor, "/api/account/tokens", body).await.expect_status(201);
    let key = Actor::Token(created["secret"].as_str().expect("text").to_owned());
    (created, key)
}

/// Returns whether the caller is authenticated.
async fn is_logged_in(server: &TestServer, actor: &Actor) -> bool {
    server.get(actor, "/api/session").await.status == StatusCode::OK
}

#[tokio::test]
async fn setup_code_creates_the_first_admin_once() {
    let server = TestServer::start_as(AuthMode::SingleUser).await;
    let services = &server.app.services;
    let old_code = services.access.issue_setup_code().await.expect("a database").expect("no users yet");
    let new_code = services.access.issue_setup_code().await.expect("a database").expect("no users yet");
    assert_ne!(old_code, new_code);
    assert!(server.get(&Actor::Unauthenticated, "/login").await.text().contains("action=\"/ui/setup\""));
    let filled_in = server.get(&Actor::Unauthenticated, &format!("/login?setup={new_code}")).await.text();
    assert!(filled_in.contains(&format!("value=\"{new_code}\"")), "{filled_in}");
    let set_up = async |code: &str, name: &str, password: &str| {
        services.access.create_first_admin(Caller::system(), code, name, password, BrowserInfo::default()).await
    };
    for (code, name, password) in [
        (old_code.as_str(), "ada", PASSWORD),
        ("", "ada", PASSWORD),
        (&new_code, "Ada", PASSWORD),
        (&new_code, "ada", "short"),
    ] {
        assert!(set_up(code, name, password).await.is_err(), "{code} {name} {password}");
    }
    let Ok(LoginOutcome::LoggedIn(session)) = set_up(&format!("  {new_code} "), "ada", PASSWORD).await else {
        panic!("the code is valid")
    };
    let ada = services
        .access
        .authenticate(&Credential::Cookie(digest(&session.cookie)))
        .await
        .expect("a database")
        .expect("a principal");
    assert_eq!((ada.name.as_str(), ada.permissions), ("ada", Permissions::all()));
    assert_eq!(set_up(&new_code, "eve", PASSWORD).await.err(), Some(ServiceError::WrongToken));
    assert_eq!(services.access.issue_setup_code().await, Ok(None));
    assert!(server.get(&Actor::Unauthenticated, "/login").await.text().contains("action=\"/ui/login\""));
    assert!(server.log_in("ada", PASSWORD).await.is_some());
}

#[tokio::test]
async fn only_the_right_name_and_password_sign_in() {
    let server = TestServer::start().await;
    server.add_user("ada", "researcher").await;
    for (name, password) in [("ada", "wrong"), ("ada", ""), ("eve", PASSWORD), ("Ada", PASSWORD), ("", PASSWORD)] {
        assert!(server.log_in(name, password).await.is_none(), "{name} {password}");
    }
    // Users without a password cannot sign in.
    let body = json!({"name": "bot", "role": "viewer"});
    server.post(&Actor::Admin, "/api/admin/users", body.clone()).await.expect_status(201);
    assert!(server.log_in("bot", "").await.is_none());
    server.post(&Actor::Admin, "/api/admin/users", body).await.expect_problem(409, "name_taken");
    let new_browser = server.log_in("ada", PASSWORD).await.expect("a valid password");
    let session = server.get(&new_browser, "/api/session").await.expect_status(200);
    assert_eq!(session["name"], "ada");
    assert!(session["permissions"].as_array().is_some_and(|all| all.contains(&json!("job.submit"))));
}

#[tokio::test]
async fn users_are_filtered_and_disabled_ones_counted_separately() {
    let server = TestServer::start().await;
    for (name, role) in [("ada", "researcher"), ("adam", "lead"), ("eve", "researcher")] {
        server.post(&Actor::Admin, "/api/admin/users", json!({"name": name, "role": role})).await.expect_status(201);
    }
    let path = format!("/api/admin/users/{}", server.user_id("eve").await);
    server.call(&Actor::Admin, "PATCH", &path, json!({"disabled": true}).to_string()).await.expect_status(200);
    let list =
        async |query: &str| server.get(&Actor::Admin, &format!("/api/admin/users?{query}")).await.expect_status(200);
    let names = |page: &Value| {
        let users = page["users"].as_array().expect("a list").iter();
        users.map(|user| user["name"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    let all = list("").await;
    let counts = json!({"viewer": 0, "researcher": 1, "lead": 1, "admin": 1, "disabled": 1});
    assert_eq!((names(&all), &all["counts"]), (["ada", "adam", "admin", "eve"].map(str::to_owned).to_vec(), &counts));
    let find = |name: &str| all["users"].as_array().expect("a list").iter().find(|user| user["name"] == name).cloned();
    assert_eq!(
        find("ada").map(|ada| (ada["last_used_at"].clone(), ada["tokens"].clone())),
        Some((Value::Null, json!(0)))
    );
    assert_eq!(find("admin").map(|admin| admin["tokens"].clone()), Some(json!(1)));
    assert_eq!(names(&list("role=researcher").await), ["ada"], "disabled users are unauthenticated");
    assert_eq!(names(&list("disabled=true").await), ["eve"]);
    let first = list("q=ADA&limit=1").await;
    assert_eq!(
        (names(&first), &first["next_cursor"], &first["counts"]["lead"]),
        (vec!["ada".to_owned()], &json!("ada"), &json!(1))
    );
    assert_eq!(names(&list("q=ADA&limit=1&cursor=ada").await), ["adam"]);
}

#[tokio::test]
async fn password_is_changed_by_its_owner_and_reset_by_an_admin() {
    let server = TestServer::start().await;
    let (ada, other) =
        (server.add_user("ada", "viewer").await, server.log_in("ada", PASSWORD).await.expect("a session"));
    let change = |old: &str, new: &str| json!({"old": old, "new": new});
    let path = "/api/account/password";
    server.post(&ada, path, change("wrong", "another-good-one")).await.expect_problem(401, "wrong_password");
    server.post(&ada, path, change(PASSWORD, "short")).await.expect_problem(422, "weak_password");
    server.post(&ada, path, change(PASSWORD, "another-good-one")).await.expect_status(200);
    assert!(is_logged_in(&server, &ada).await && !is_logged_in(&server, &other).await, "other browsers are logged out");
    assert!(server.log_in("ada", PASSWORD).await.is_none());
    let path = format!("/api/admin/users/{}/password", server.user_id("ada").await);
    server.post(&ada, &path, json!({"password": "given-by-an-admin"})).await.expect_problem(403, "permission_denied");
    server.post(&Actor::Admin, &path, json!({"password": "given-by-an-admin"})).await.expect_status(200);
    assert!(!is_logged_in(&server, &ada).await && server.log_in("ada", "given-by-an-admin").await.is_some());
}

#[tokio::test]
async fn weak_passwords_are_rejected_everywhere() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "admin").await;
    let reset = format!("/api/admin/users/{}/password", server.user_id("ada").await);
    for (password, reason) in [
        ("eleven-char", "short"),
        ("password1234", "guessable"),
        ("ada-ada-ada-ada", "guessable"),
        ("0r968ji9ufj6", "breached"),
    ] {
        let create = json!({"name": "eve", "role": "viewer", "password": password});
        let change = json!({"old": PASSWORD, "new": password});
        for (path, body) in [
            ("/api/admin/users", create),
            ("/api/account/password", change),
            (reset.as_str(), json!({"password": password})),
        ] {
            let problem = server.post(&ada, path, body).await.expect_problem(422, "weak_password");
            assert_eq!(problem["why"], reason, "{path} {password}");
        }
    }
    let form = format!("old={PASSWORD}&new=password1234");
    let Actor::Cookie(session) = &ada else { panic!("a browser") };
    let in_spanish = Actor::Cookie(format!("{session}; language=es"));
    let redirect = server.call(&in_spanish, "POST", "/ui/account/password", form).await;
    let flash = redirect.headers["set-cookie"].to_str().expect("ascii").split(';').next().expect("a cookie").to_owned();
    let page = server.get(&Actor::Cookie(format!("{session}; {flash}; language=es")), "/account").await.text();
    assert!(page.contains("fácil de adivinar") && !page.contains("password1234"), "{page}");
    assert!(is_logged_in(&server, &ada).await && server.log_in("ada", PASSWORD).await.is_some());
}

#[tokio::test]
async fn disabling_is_immediate_and_the_last_admin_stays() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    let (_, script) = token(&server, &ada, json!({"name": "script"})).await;
    let path = format!("/api/admin/users/{}", server.user_id("ada").await);
    let edit = async |path: &str, body: Value| server.call(&Actor::Admin, "PATCH", path, body.to_string()).await;
    edit(&path, json!({"role": "viewer"})).await.expect_status(200);
    for actor in [&ada, &script] {
        server.call(actor, "PUT", "/api/configs/x", "{}").await.expect_problem(403, "permission_denied");
    }
    edit(&path, json!({"disabled": true})).await.expect_status(200);
    assert!(!is_logged_in(&server, &ada).await && !is_logged_in(&server, &script).await);
    assert!(server.log_in("ada", PASSWORD).await.is_none());
    edit(&path, json!({"disabled": false})).await.expect_status(200);
    assert!(
        !is_logged_in(&server, &ada).await && is_logged_in(&server, &script).await,
        "sessions have ended, tokens are valid"
    );
    let admin_path = format!("/api/admin/users/{}", server.user_id("admin").await);
    edit(&admin_path, json!({"role": "lead"})).await.expect_problem(409, "last_admin");
    edit(&admin_path, json!({"disabled": true})).await.expect_problem(409, "last_admin");
    edit(&path, json!({"role": "admin"})).await.expect_status(200);
    edit(&admin_path, json!({"role": "lead"})).await.expect_status(200);
    server.get(&Actor::Admin, "/api/admin/users").await.expect_problem(403, "permission_denied");
}

#[tokio::test]
async fn tokens_have_their_scopes_until_they_expire() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let ada = server.add_user("ada", "researcher").await;
    let body = json!({"name": "ci", "scopes": ["account.manage", "job.submit", "job.view.own"], "expires_in_days": 1});
    let (created, ci) = token(&server, &ada, body.clone()).await;
    server.post(&ada, "/api/account/tokens", body).await.expect_problem(409, "name_taken");
    let job = server.post(&ci, "/api/queue/submit", json!({"config_name": "digits"})).await.expect_status(201);
    let job = job["job_id"].as_str().expect("text");
    let view = server.get(&ci, &format!("/api/queue/{job}")).await.expect_status(200);
    assert_eq!(view["submitted_by"], "ada");
    let rejected = server.call(&ci, "PUT", "/api/configs/x", "{}").await.expect_problem(403, "permission_denied");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("`config.edit`")), "{rejected}");
    server.post(&ci, &format!("/api/queue/{job}/cancel"), json!({})).await.expect_problem(403, "permission_denied");

    // A token cannot create one with more permissions than its own or its owner's.
    let all = json!({"name": "more"});
    let (child_token, key) = token(&server, &ci, all).await;
    assert_eq!(child_token["scopes"], json!(["account.manage", "job.submit", "job.view.own"]));
    server.call(&key, "PUT", "/api/configs/x", "{}").await.expect_problem(403, "permission_denied");
    for (actor, scope) in [(&ci, "config.edit"), (&ada, "admin.workers")] {
        let body = json!({"name": "wide", "scopes": [scope]});
        server.post(actor, "/api/account/tokens", body).await.expect_problem(403, "permission_denied");
    }
    server
        .post(&ada, "/api/account/tokens", json!({"name": "x", "scopes": ["root"]}))
        .await
        .expect_problem(400, "invalid_json");

    let list = server.get(&ada, "/api/account/tokens").await.expect_status(200);
    let found = list["tokens"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|token| token["id"] == created["id"])
        .expect("the token");
    assert_eq!(found["name"], "ci");
    assert!(found["last_used_at"].is_string() && found.get("secret").is_none(), "{found}");
    let browser = server
        .log_in(
            "",
            match &ci {
                Actor::Token(secret) => secret,
                _ => "",
            },
        )
        .await
        .expect("a session");
    server.call(&browser, "PUT", "/api/configs/x", "{}").await.expect_problem(403, "permission_denied");
    server
        .call(&ada, "DELETE", &format!("/api/account/tokens/{}", child_token["id"].as_str().expect("text")), "")
        .await
        .expect_status(200);
    assert!(!is_logged_in(&server, &key).await);
    server.advance(Millis::from_secs(86_400)).await;
    assert!(!is_logged_in(&server, &ci).await && !is_logged_in(&server, &browser).await, "the token has expired");
}

#[tokio::test]
async fn tokens_expire_after_ninety_days_by_default() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    let expiry = async |body: Value| token(&server, &ada, body).await.0["expires_at"].clone();
    assert_eq!(expiry(json!({"name": "usual"})).await, "2024-04-14T10:30:00.000Z");
    assert_eq!(expiry(json!({"name": "short", "expires_in_days": 1})).await, "2024-01-16T10:30:00.000Z");
    assert_eq!(expiry(json!({"name": "ever", "never_expires": true})).await, Value::Null);
    let both = json!({"name": "both", "expires_in_days": 1, "never_expires": true});
    server.post(&ada, "/api/account/tokens", both).await.expect_problem(422, "out_of_range");
    for (name, fields, expiry_text) in [
        ("form", "days=", "expires 14 Apr 2024, 10:30:00 UTC"),
        ("form-days", "days=7", "expires 22 Jan 2024, 10:30:00 UTC"),
        ("form-ever", "days=&never_expires=on", "never expires"),
    ] {
        server.call(&ada, "POST", "/ui/account/tokens", format!("name={name}&{fields}")).await;
        let page = server.get(&ada, "/account").await.text();
        let row = page.split("<li").find(|row| row.contains(&format!(">{name}<"))).expect("its row").to_owned();
        assert!(row.contains(expiry_text), "{row}");
    }
}

#[tokio::test]
async fn revoked_token_ends_its_browser_sessions() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "viewer").await;
    let (created, key) = token(&server, &ada, json!({"name": "laptop"})).await;
    let Actor::Token(secret) = &key else { panic!("a token") };
    let browser = server.log_in("", secret).await.expect("a session");
    let path = format!("/api/account/tokens/{}", created["id"].as_str().expect("text"));
    server
        .call(&server.add_user("eve", "lead").await, "DELETE", &path, "")
        .await
        .expect_problem(404, "token_not_found");
    assert!(is_logged_in(&server, &browser).await);
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_status(200);
    assert!(
        !is_logged_in(&server, &browser).await
            && !is_logged_in(&server, &key).await
            && is_logged_in(&server, &ada).await
    );
}

#[tokio::test]
async fn jobs_of_others_are_not_found_without_permission() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.restricted_token("eve").await);
    let (lead, viewer) = (server.add_user("lea", "lead").await, server.add_user("vic", "viewer").await);
    let submit = async |actor: &Actor, priority: u8| {
        server.post(actor, "/api/queue/submit", json!({"config_name": "digits", "priority": priority})).await
    };
    let job = submit(&ada, 10).await.expect_status(201)["job_id"].as_str().expect("text").to_owned();
    submit(&ada, 11).await.expect_problem(403, "permission_denied");
    submit(&lead, 50).await.expect_status(201);

    let job_path = |rest: &str| format!("/api/queue/{job}{rest}");
    for rest in [
        "",
        "/logs",
        "/logs?follow=1",
        "/explain",
        "/events",
        "/progress",
        "/metrics",
        "/gpus",
        "/artifacts",
        "/artifacts/a",
    ] {
        server.get(&eve, &job_path(rest)).await.expect_problem(404, "job_not_found");
    }
    server.post(&eve, &job_path("/cancel"), json!({})).await.expect_problem(404, "job_not_found");
    server.post(&eve, &job_path("/retry"), json!({})).await.expect_problem(404, "job_not_found");
    server.post(&viewer, &job_path("/cancel"), json!({})).await.expect_problem(403, "permission_denied");
    server.post(&ada, &job_path("/priority"), json!({"priority": 1})).await.expect_problem(403, "permission_denied");
    for (actor, number) in [(&ada, 2), (&eve, 0), (&lead, 2), (&viewer, 2)] {
        let page = server.get(actor, "/api/queue").await.expect_status(200);
        let stats = server.get(actor, "/api/queue/stats").await.expect_status(200);
        assert_eq!(
            (&page["total"], &page["counts"]["waiting"], &stats["waiting"]),
            (&json!(number), &json!(number), &json!(number))
        );
    }
    server.get(&eve, "/api/queue?user=ada").await.expect_problem(403, "permission_denied");
    server.get(&lead, &job_path("")).await.expect_status(200);
    let page = server.call(&eve, "GET", &format!("/jobs/{job}"), "").await;
    assert!(page.text().contains(" not found."), "the page uses the permissions of its reader");
    assert_eq!(server.call(&eve, "POST", &format!("/ui/jobs/{job}/cancel"), "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(server.job_status(&job).await, "queued");
    server.post(&lead, &job_path("/cancel"), json!({})).await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "cancelled");
}

#[tokio::test]
async fn audit_log_names_the_token() {
    let server = TestServer::start().await;
    let (_, ci) = token(&server, &Actor::Admin, json!({"name": "ci"})).await;
    let created = server.post(&ci, "/api/admin/workers", json!({"name": "gpu-1"})).await.expect_status(201);
    let id = created["worker_id"].as_str().expect("text");
    let audit_log =
        server.app.services.context.store.read().await.expect("a reader").audit_of_target(id).await.expect("readable");
    assert_eq!(audit_log[0].actor, "admin/ci");
    assert!(!ADMIN.is_empty());
}

#[tokio::test]
async fn a_server_without_accounts_has_no_tokens() {
    let server = TestServer::start_as(AuthMode::SingleUser).await;
    for path in ["/api/account/tokens", "/api/account/sessions"] {
        server.get(&Actor::Unauthenticated, path).await.expect_problem(409, "no_accounts");
    }
    server
        .post(&Actor::Unauthenticated, "/api/account/tokens", json!({"name": "x"}))
        .await
        .expect_problem(409, "no_accounts");
}

#[tokio::test]
async fn sensitive_actions_require_the_password_again() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "admin").await;
    let (worker, _) = server.create_worker("gpu-1").await;
    let user = server.user_id("ada").await;
    let requests = [
        ("POST", "/api/account/tokens".to_owned(), json!({"name": "ci"})),
        ("POST", "/api/admin/users".to_owned(), json!({"name": "eve", "role": "admin"})),
        ("PATCH", format!("/api/admin/users/{user}"), json!({"role": "admin"})),
        ("POST", format!("/api/admin/workers/{worker}/token"), json!({})),
        ("DELETE", format!("/api/admin/workers/{worker}"), json!({})),
    ];
    server.clock.advance(Millis::from_secs(15 * 60));
    for (method, path, body) in &requests {
        server.call(&ada, method, path, body.to_string()).await.expect_problem(403, "password_needed");
    }
    let form = server.call(&ada, "POST", &format!("/ui/workers/{worker}/delete"), "").await;
    assert_eq!(form.status, StatusCode::FORBIDDEN, "the page asks for the password");
    server.get(&ada, "/api/admin/workers").await.expect_status(200);

    let prove = |password: &str| json!({"password": password});
    server.post(&ada, "/api/session/proof", prove("not-the-password")).await.expect_problem(401, "wrong_password");
    server.post(&ada, "/api/session/proof", prove(PASSWORD)).await.expect_status(200);
    for (method, path, body) in &requests {
        let response = server.call(&ada, method, path, body.to_string()).await;
        assert!(response.status.is_success(), "{method} {path}: {}", response.text());
    }

    server.clock.advance(Millis::from_secs(15 * 60));
    let form = server.call(&ada, "POST", "/ui/confirm", format!("password={PASSWORD}&next=/admin/users")).await;
    assert_eq!(form.headers["location"], "/admin/users");
    server.post(&ada, "/api/admin/users", json!({"name": "vic", "role": "viewer"})).await.expect_status(201);
    // A script has no browser session that could be stolen.
    server.post(&Actor::Admin, "/api/admin/users", json!({"name": "leo", "role": "viewer"})).await.expect_status(201);
}

#[tokio::test]
async fn session_of_a_token_confirms_with_the_token() {
    let server = TestServer::start().await;
    let form = server.call(&Actor::Unauthenticated, "POST", "/ui/login", format!("password={ADMIN}")).await;
    let cookie = form.headers["set-cookie"].to_str().expect("ascii").split(';').next().expect("a cookie").to_owned();
    let browser = Actor::Cookie(cookie);
    server.clock.advance(Millis::from_secs(15 * 60));
    server.post(&browser, "/api/account/tokens", json!({"name": "ci"})).await.expect_problem(403, "password_needed");
    server
        .post(&browser, "/api/session/proof", json!({"password": PASSWORD}))
        .await
        .expect_problem(401, "wrong_password");
    server.post(&browser, "/api/session/proof", json!({"password": ADMIN})).await.expect_status(200);
    server.post(&browser, "/api/account/tokens", json!({"name": "ci"})).await.expect_status(201);
}

#[tokio::test]
async fn token_for_another_user_is_limited_to_their_permissions() {
    let server = TestServer::start().await;
    let vic = server.add_user("vic", "viewer").await;
    let path = format!("/api/admin/users/{}", server.user_id("vic").await);
    let created = server.post(&Actor::Admin, &format!("{path}/tokens"), json!({"name": "ci"})).await.expect_status(201);
    let created = created.get("token").filter(|token| token.is_object()).unwrap_or(&created).clone();
    let scopes = created["scopes"].as_array().expect("a list").clone();
    let permissions =
        server.get(&vic, "/api/session").await.expect_status(200)["permissions"].as_array().expect("a list").clone();
    assert!(
        !scopes.is_empty() && scopes.iter().all(|scope| permissions.contains(scope)),
        "{scopes:?}, {permissions:?}"
    );
}
