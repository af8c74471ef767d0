//! Pages and forms in a browser without JavaScript.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;

use crate::tests::harness::{ADMIN, Actor, TestServer, read_response};

/// Posts a form; returns the location and the cookies for it.
pub(in crate::tests) async fn post(server: &TestServer, cookies: &str, path: &str, form: &str) -> (String, String) {
    let response = server.call(&Actor::Cookie(cookies.to_owned()), "POST", path, form.to_owned()).await;
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text());
    let mut cookie_list = vec![cookies.to_owned()];
    for cookie in response.headers.get_all(header::SET_COOKIE) {
        cookie_list.push(cookie.to_str().expect("ascii").split(';').next().expect("a cookie").to_owned());
    }
    (response.headers[header::LOCATION].to_str().expect("ascii").to_owned(), cookie_list.join("; "))
}

pub(in crate::tests) async fn log_in(server: &TestServer) -> String {
    post(server, "theme=dark", "/ui/login", &format!("password={ADMIN}")).await.1
}

pub(in crate::tests) async fn page(server: &TestServer, cookies: &str, path: &str) -> String {
    let response = server.get(&Actor::Cookie(cookies.to_owned()), path).await;
    assert_eq!(response.status, StatusCode::OK, "{path}: {}", response.text());
    let policy = response.headers[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii");
    let plain = response.text().contains("class=\"is-plain\"");
    assert!(policy.contains(if plain { "script-src 'nonce-" } else { "script-src 'self' 'nonce-" }), "{policy}");
    assert_eq!(plain, !response.text().contains("modulepreload"), "a server-rendered page has no program");
    assert!(!policy.contains("unsafe-inline"), "{policy}");
    assert_eq!(response.headers[header::CACHE_CONTROL], "no-store");
    let text = response.text();
    assert!(text.contains("</html>"), "the page is complete");
    assert!(!text.contains(" style=\""), "the policy blocks inline styles");
    text
}

#[tokio::test]
async fn unauthenticated_visitors_are_sent_to_the_sign_in_page() {
    let server = TestServer::start().await;
    for path in ["/", "/jobs?status=running", "/jobs/j_1", "/train", "/admin/workers", "/admin/workers/new"] {
        let response = server.get(&Actor::Unauthenticated, path).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "{path}");
        assert!(response.headers[header::LOCATION].to_str().is_ok_and(|to| to.starts_with("/login?next=/")));
    }
    assert!(page(&server, "", "/login").await.contains("action=\"/ui/login\""));
    for path in ["/ui/workers", "/ui/workers/w_1/drain", "/ui/workers/w_1/delete", "/ui/jobs", "/ui/jobs/j_1/cancel"] {
        let response = server.call(&Actor::Unauthenticated, "POST", path, "name=x").await;
        assert_eq!(response.status, StatusCode::SEE_OTHER);
        assert!(response.headers[header::LOCATION].to_str().is_ok_and(|to| to.starts_with("/login")), "{path}");
    }
    assert_eq!(server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200)["total"], 0);
}

#[tokio::test]
async fn expired_session_is_explained() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let expired_text = "due to inactivity, or your session was ended elsewhere";
    assert!(!page(&server, &session, "/login").await.contains(expired_text), "the session is valid");
    assert!(!page(&server, "", "/login").await.contains(expired_text), "there was no session");
    let response = server.get(&Actor::Cookie(session.clone()), "/api/account/sessions").await.expect_status(200);
    let id = response["sessions"][0]["id"].as_str().expect("an id").to_owned();
    server.call(&Actor::Admin, "DELETE", &format!("/api/account/sessions/{id}"), "").await;
    let response = server.get(&Actor::Cookie(session.clone()), "/jobs?status=running").await;
    assert_eq!(response.headers[header::LOCATION], "/login?next=/jobs%3Fstatus%3Drunning");
    let html = page(&server, &session, "/login?next=/jobs%3Fstatus%3Drunning").await;
    assert!(html.contains(expired_text) && html.contains("value=\"/jobs?status=running\""), "{html}");
    let other = post(&server, &session, "/ui/login", "password=wrong").await.1;
    let html = page(&server, &other, "/login").await;
    assert!(
        html.contains("Invalid token or code") && !html.contains(expired_text),
        "the page shows the newest message: {html}"
    );
}

#[tokio::test]
async fn wrong_token_shows_an_error_and_no_redirect() {
    let server = TestServer::start().await;
    let (location, cookies) = post(&server, "", "/ui/login", "password=wrong&next=//evil.example").await;
    assert_eq!(location, "/login?next=/");
    let html = page(&server, &cookies, &location).await;
    assert!(html.contains("Invalid token or code"));
    assert!(!page(&server, &cookies, &location).await.contains("Invalid token or code"), "the message is shown once");
}

#[tokio::test]
async fn job_is_submitted_and_cancelled_by_forms() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let session = log_in(&server).await;
    assert!(page(&server, &session, "/train").await.contains("digits"));
    let (job_path, cookies) =
        post(&server, &session, "/ui/jobs", "config=digits&target=worker&labels=&labels=team%3Dnlp&gpus=").await;
    assert!(job_path.starts_with("/jobs/j_"), "{job_path}");
    let html = page(&server, &cookies, &job_path).await;
    assert!(html.contains("digits"));
    assert!(page(&server, &session, "/jobs").await.contains(&job_path));
    let job = job_path.trim_start_matches("/jobs/");
    for (form, priority) in [("priority=33&back=/jobs?phase=waiting", 33), ("top=true&priority=7", 50)] {
        let (location, _) = post(&server, &session, &format!("/ui{job_path}/priority"), form).await;
        assert_eq!(location, if priority == 33 { "/jobs?phase=waiting" } else { job_path.as_str() });
        assert_eq!(server.job(job).await["priority"], priority);
    }
    let (location, cookies) = post(&server, &session, &format!("/ui{job_path}/priority"), "priority=51").await;
    assert!(page(&server, &cookies, &location).await.contains("0 to 50"));
    assert!(page(&server, &session, &format!("{job_path}/cancel?back=javascript:x")).await.contains("value=\"/jobs/"));
    let (location, _) = post(&server, &session, &format!("/ui{job_path}/cancel"), "back=//evil.example").await;
    assert_eq!(location, "/", "the redirect stays on this site");
    assert_eq!(server.job_status(job).await, "cancelled");
    assert_eq!(server.job(job).await["worker_labels"], json!({"team": "nlp"}), "of several fields with one name");
    let (retried_path, _) = post(&server, &session, &format!("/ui{job_path}/retry"), "").await;
    assert_eq!(server.job(retried_path.trim_start_matches("/jobs/")).await["retry_of"], job);
    for view in
        ["", "?show=charts", "?show=samples", "?show=files", "?show=system", "/log", "/configuration", "/events"]
    {
        assert!(page(&server, &session, &format!("{job_path}{view}")).await.contains("digits"), "{view}");
    }
    let (location, cookies) = post(&server, &session, "/ui/jobs", "config=nope&target=worker&gpus=many").await;
    assert_eq!(location, "/train");
    assert!(page(&server, &cookies, &location).await.contains("GPUs must be 1 to 64, or empty"));
}

#[tokio::test]
async fn every_page_is_complete_and_escapes_reported_text() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("<script>alert(1)</script>").await;
    let registration = serde_json::json!({"protocol": 1, "host": "<img src=x onerror=alert(1)>", "gpu_count": 1,
        "gpu_name": "\"><script>alert(2)</script>", "labels": {"<b>": "</textarea><script>alert(3)</script>"}});
    server.post(&key, "/api/workers/register", registration).await.expect_status(200);
    let session = log_in(&server).await;
    for path in [
        "/",
        "/jobs",
        "/train",
        "/configs",
        "/admin/workers",
        "/admin/workers/new",
        &format!("/admin/workers/{id}"),
        &format!("/admin/workers/{id}?show=gpus"),
        &format!("/admin/workers/{id}/jobs"),
        &format!("/admin/workers/{id}/events"),
        &format!("/admin/workers/{id}/delete"),
        "/preferences",
        "/search?q=script",
        "/search?q=%3Cscript%3Ealert(4)%3C/script%3E",
    ] {
        let text = page(&server, &session, path).await;
        assert!(text.contains("data-theme=\"dark\""), "{path} has the theme of its reader");
        assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{path} escapes reported text");
    }
}

#[tokio::test]
async fn unhealthy_host_shows_its_reason_everywhere() {
    let server = TestServer::start().await;
    let cookies = log_in(&server).await;
    let (id, key) = server.create_worker("cpu-1").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "unhealthy_reason": "the disk of <b> is full"});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let words = "The agent accepts no new jobs: the disk of &lt;b&gt; is full. Fix the host";
    let html = page(&server, &cookies, &format!("/admin/workers/{id}")).await;
    assert!(html.contains("<span>Unhealthy") && html.matches(words).count() >= 2, "beside the status, and below");
    assert!(page(&server, &cookies, "/admin/workers").await.contains("<span>Unhealthy"));
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    let disconnected = page(&server, &cookies, &format!("/admin/workers/{id}")).await;
    assert!(
        !disconnected.contains("Unhealthy") && !disconnected.contains(words),
        "the health of a disconnected worker is unknown"
    );
}

#[tokio::test]
async fn not_found_is_a_page() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let job = format!(
        "/jobs/{}",
        app::domain::ids::JobId::new(server.app.services.context.now(), server.app.services.context.entropy())
    );
    let unknown = ["/admin/workers/w_none", "/admin/workers/w_none/jobs", "/jobs/x/events"];
    for path in ["/jobs/j_none", "/jobs/x/log", &job].into_iter().chain(unknown) {
        let response = server.get(&Actor::Cookie(session.clone()), path).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
        let text = response.text();
        assert!(text.contains("</html>") && text.contains("class=\"sidebar\""), "{path}: {text}");
        assert_eq!(text.matches("id=\"content\"").count(), 1, "{path}: {text}");
    }
    let response = server.get(&Actor::Cookie(session), "/admin/workers/%2e/events").await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    let request =
        Request::builder().method("POST").uri("/nowhere").header("host", "localhost:8001").body(Body::empty());
    assert_eq!(read_response(server.send(request.expect("a request")).await).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn theme_is_stored_in_a_cookie() {
    let server = TestServer::start().await;
    let (location, cookies) = post(&server, "", "/ui/preferences", "theme=light&next=/login").await;
    assert_eq!((location.as_str(), cookies.trim_start_matches("; ")), ("/login", "theme=light"));
    assert!(page(&server, &cookies, "/login").await.contains("data-theme=\"light\""));
}

#[tokio::test]
async fn density_is_applied_before_the_first_paint() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    assert!(!page(&server, &session, "/jobs").await.contains("is-compact"));
    let (location, cookies) = post(&server, &session, "/ui/preferences", "density=compact&next=/jobs").await;
    assert_eq!(location, "/jobs");
    assert!(page(&server, &cookies, &location).await.contains("class=\"is-compact\""));
    assert!(
        server.get(&Actor::Cookie(cookies), "/secrets").await.text().contains("class=\"is-plain has-help is-compact\"")
    );
    let (location, cookies) = post(&server, "", "/ui/preferences", "density=no&next=//evil.example").await;
    assert_eq!((location.as_str(), cookies.as_str()), ("/", ""));
}

#[tokio::test]
async fn links_can_preselect_but_not_act() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let (id, _) = server.create_worker("gpu-1").await;
    let path = format!("/admin/workers/{id}");
    assert!(!page(&server, &session, &path).await.contains("<details open class=\"confirm\""));
    let html = page(&server, &session, &format!("{path}?confirm=drain")).await;
    assert!(html.contains("<details open class=\"confirm\""), "{html}");
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(worker["draining"], false);
}

#[tokio::test]
async fn language_comes_from_the_cookie_or_the_browser() {
    let server = TestServer::start().await;
    let (location, cookies) = post(&server, "", "/ui/preferences", "language=pt-BR&next=/login").await;
    assert_eq!((location.as_str(), cookies.trim_start_matches("; ")), ("/login", "language=pt-BR"));
    assert!(page(&server, &cookies, "/login").await.contains("<html lang=\"pt-BR\""));
    for (accepted, tag) in [("ja,en;q=0.5", "ja"), ("fr", "en")] {
        let request =
            Request::builder().uri("/login").header("host", "localhost:8001").header("accept-language", accepted);
        let response = read_response(server.send(request.body(Body::empty()).expect("a request")).await).await;
        assert!(response.text().contains(&format!("<html lang=\"{tag}\"")), "{accepted}");
    }
}

#[tokio::test]
async fn users_are_added_changed_and_disabled_by_forms() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let form = "name=ada&role=researcher&password=correct-horse-battery";
    let (location, cookies) = post(&server, &session, "/ui/users", form).await;
    assert_eq!(location, "/admin/users");
    let html = page(&server, &cookies, &location).await;
    assert!(html.contains("Changes saved.") && html.contains(">ada<"), "{html}");
    let (_, rejected) = post(&server, &session, "/ui/users", form).await;
    assert!(page(&server, &rejected, &location).await.contains("exists already"));
    assert!(!page(&server, &rejected, &location).await.contains("correct-horse"), "a password is never shown again");
    let (_, rejected) = post(&server, &session, "/ui/users", "name=eve&role=queen").await;
    assert!(page(&server, &rejected, &location).await.contains("viewer, researcher, lead or admin"));

    let ada = server.user_id("ada").await;
    let user_path = format!("/admin/users/{ada}");
    let user_session = server.log_in("ada", "correct-horse-battery").await.expect("a session");
    assert!(page(&server, &session, &user_path).await.contains("Disable user"));
    let (location, cookies) = post(&server, &session, &format!("/ui/users/{ada}"), "role=lead&enabled=on").await;
    assert_eq!(location, user_path);
    assert!(page(&server, &cookies, &user_path).await.contains("selected"));
    let (_, cookies) = post(&server, &session, &format!("/ui/users/{ada}/password"), "new=another-good-one").await;
    assert!(page(&server, &cookies, &user_path).await.contains("sessions ended and API tokens were revoked."));
    server.get(&user_session, "/api/session").await.expect_problem(401, "not_authenticated");
    let user_session = server.log_in("ada", "another-good-one").await.expect("a session");
    post(&server, &session, &format!("/ui/users/{ada}"), "role=lead").await;
    server.get(&user_session, "/api/session").await.expect_problem(401, "not_authenticated");
    assert!(page(&server, &session, "/admin/users").await.replace("<!>", "").contains("text-bad\">disabled"));
    assert!(page(&server, &session, &user_path).await.contains(">Enable<"));

    let admin = server.user_id("admin").await;
    let (location, cookies) = post(&server, &session, &format!("/ui/users/{admin}"), "role=viewer&enabled=on").await;
    assert!(page(&server, &cookies, &location).await.contains("the last active admin"));
    let response = server.get(&Actor::Cookie(session), "/admin/users/u_none").await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn secret_is_stored_and_deleted_by_forms() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let (location, cookies) = post(&server, &session, "/ui/secrets", "name=hf_token&value=hf_0123456789").await;
    let html = page(&server, &cookies, &location).await;
    assert!(html.contains("HF_TOKEN") && !html.contains("hf_0123456789"), "{html}");
    post(&server, &session, "/ui/secrets", "name=WANDB_API_KEY&value=wandb_0123456789&shared=on").await;
    let list = server.get(&Actor::Admin, "/api/secrets").await.expect_status(200);
    assert_eq!((&list["secrets"][0]["shared"], &list["secrets"][1]["shared"]), (&false.into(), &true.into()));
    let (location, cookies) = post(&server, &session, "/ui/secrets", "name=PATH&value=hf_0123456789").await;
    let html = page(&server, &cookies, &location).await;
    assert!(html.contains("no name of a secret") && !html.contains("hf_0123456789"), "{html}");
    post(&server, &session, "/ui/secrets/HF_TOKEN/remove", "").await;
    post(&server, &session, "/ui/secrets/WANDB_API_KEY/remove", "shared=on").await;
    assert_eq!(server.get(&Actor::Admin, "/api/secrets").await.expect_status(200)["secrets"], serde_json::json!([]));

    let Actor::Cookie(leo) = server.add_user("leo", "lead").await else { panic!("a browser") };
    let (location, cookies) = post(&server, &leo, "/ui/secrets", "name=A_KEY&value=0123456789&shared=on").await;
    assert!(page(&server, &cookies, &location).await.contains("secret.manage"));
    assert!(!page(&server, &leo, "/secrets").await.contains("name=\"shared\""));
}

#[tokio::test]
async fn high_priority_without_permission_is_explained() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let Actor::Cookie(cookie) = server.add_user("eve", "researcher").await else { panic!("a session") };
    let html = page(&server, &cookie, "/train?config=digits&priority=11").await;
    assert!(html.contains("queue.manage"), "{html}");
    let (location, cookies) = post(&server, &cookie, "/ui/jobs", "config=digits&priority=11").await;
    assert_eq!(location, "/train");
    assert!(page(&server, &cookies, &location).await.contains("queue.manage"));
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["total"], 0, "nothing was submitted");
    assert!(post(&server, &cookie, "/ui/jobs", "config=digits&priority=10").await.0.starts_with("/jobs/j_"));
}

#[tokio::test]
async fn every_page_except_sign_in_has_scripts() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    assert!(!page(&server, "", "/login").await.contains("modulepreload"));
    let session = log_in(&server).await;
    for path in ["/", "/train", "/configs/digits", "/secrets", "/admin/audit"] {
        assert!(page(&server, &session, path).await.contains("modulepreload"), "{path}");
    }
}

#[tokio::test]
async fn flash_message_is_shown_by_the_page_once() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let (location, cookies) = post(&server, &session, "/ui/secrets", "name=HF_TOKEN&value=hf_0123456789").await;
    let request = axum::http::Request::get(&location).header("cookie", &cookies).header("x-simpletuner-fragments", "1");
    let parts =
        read_response(server.send(request.body(axum::body::Body::empty()).expect("a request")).await).await.text();
    assert!(parts.contains("HF_TOKEN") && !parts.contains("Secret saved."));
    assert!(page(&server, &cookies, &location).await.contains("Secret saved."));
}

#[tokio::test]
async fn documented_page_paths_exist() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let cookies = log_in(&server).await;
    let home = page(&server, &cookies, "/jobs").await;
    let position = |text: &str| home.find(text).unwrap_or_else(|| panic!("no {text}: {home}"));
    assert!(position("Administration") < position("href=\"/admin/workers\"") && home.contains("href=\"/train\""));
    let workers = page(&server, &cookies, "/admin/workers").await;
    assert!(workers.contains("href=\"/admin/workers/new\"") && workers.contains("Create worker"), "{workers}");
    let train = page(&server, &cookies, "/train").await;
    assert!(train.contains("<h1>Train in Cloud"), "{train}");
    let target = train.split("name=\"target\"").nth(1).unwrap_or_else(|| panic!("no target: {train}"));
    let target = target.split("</label>").next().expect("a label");
    assert!(target.contains("value=\"worker\"") && target.contains("Worker"), "{target}");
}

#[tokio::test]
async fn keys_are_named_by_platform() {
    let server = TestServer::start().await;
    let cookies = log_in(&server).await;
    for (agent, shown, other) in [
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.1 Safari/605.1.15",
            "⌘ K",
            "Ctrl K",
        ),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Ctrl K", "⌘ K"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/131.0.0.0 Safari/537.36",
            "Ctrl K",
            "⌘ K",
        ),
    ] {
        let request = Request::builder().uri("/jobs").header(header::HOST, "localhost:8001");
        let request = request.header(header::COOKIE, &cookies).header(header::USER_AGENT, agent);
        let page = read_response(server.send(request.body(Body::empty()).expect("a request")).await).await.text();
        let page = page.replace("<!>", "");
        assert!(page.contains(&format!(">{shown}</kbd>")) && !page.contains(other), "{agent}: {page}");
    }
}
