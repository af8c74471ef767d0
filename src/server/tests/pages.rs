//! Pages and forms, as a browser without JavaScript meets them.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;

use super::harness::{ADMIN, By, Server, read};

/// Posts a form; returns where it leads and the cookies to go there with.
pub(super) async fn post(server: &Server, cookies: &str, path: &str, form: &str) -> (String, String) {
    let answer = server.call(&By::Cookie(cookies.to_owned()), "POST", path, form.to_owned()).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());
    let mut jar = vec![cookies.to_owned()];
    for cookie in answer.headers.get_all(header::SET_COOKIE) {
        jar.push(cookie.to_str().expect("ascii").split(';').next().expect("a pair").to_owned());
    }
    (answer.headers[header::LOCATION].to_str().expect("ascii").to_owned(), jar.join("; "))
}

pub(super) async fn log_in(server: &Server) -> String {
    post(server, "theme=dark", "/ui/login", &format!("password={ADMIN}")).await.1
}

pub(super) async fn page(server: &Server, cookies: &str, path: &str) -> String {
    let answer = server.get(&By::Cookie(cookies.to_owned()), path).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
    let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii");
    let plain = answer.text().contains("class=\"is-plain\"");
    assert!(policy.contains(if plain { "script-src 'nonce-" } else { "script-src 'self' 'nonce-" }), "{policy}");
    assert_eq!(plain, !answer.text().contains("modulepreload"), "a plain page has no program");
    assert!(!policy.contains("unsafe-inline"), "{policy}");
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    let text = answer.text();
    assert!(text.contains("</html>"), "the page is whole");
    assert!(!text.contains(" style=\""), "the policy blocks inline styles");
    text
}

#[tokio::test]
async fn strangers_are_shown_the_way_in() {
    let server = Server::start().await;
    for path in ["/", "/jobs?status=running", "/jobs/j_1", "/train", "/admin/workers", "/admin/workers/new"] {
        let answer = server.get(&By::Nobody, path).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{path}");
        assert!(answer.headers[header::LOCATION].to_str().is_ok_and(|to| to.starts_with("/login?next=/")));
    }
    assert!(page(&server, "", "/login").await.contains("action=\"/ui/login\""));
    for path in ["/ui/workers", "/ui/workers/w_1/drain", "/ui/workers/w_1/delete", "/ui/jobs", "/ui/jobs/j_1/cancel"] {
        let answer = server.call(&By::Nobody, "POST", path, "name=x").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert!(answer.headers[header::LOCATION].to_str().is_ok_and(|to| to.starts_with("/login")), "{path}");
    }
    assert_eq!(server.get(&By::Admin, "/api/admin/workers").await.ok(200)["total"], 0);
}

#[tokio::test]
async fn who_was_logged_in_is_told_why_they_are_not() {
    let server = Server::start().await;
    let session = log_in(&server).await;
    let over = "your session was not used for a long time, or it was ended elsewhere";
    assert!(!page(&server, &session, "/login").await.contains(over), "it is not");
    assert!(!page(&server, "", "/login").await.contains(over), "who never was");
    let answer = server.get(&By::Cookie(session.clone()), "/api/account/sessions").await.ok(200);
    let id = answer["sessions"][0]["id"].as_str().expect("an id").to_owned();
    server.call(&By::Admin, "DELETE", &format!("/api/account/sessions/{id}"), "").await;
    let answer = server.get(&By::Cookie(session.clone()), "/jobs?status=running").await;
    assert_eq!(answer.headers[header::LOCATION], "/login?next=/jobs%3Fstatus%3Drunning");
    let shown = page(&server, &session, "/login?next=/jobs%3Fstatus%3Drunning").await;
    assert!(shown.contains(over) && shown.contains("value=\"/jobs?status=running\""), "{shown}");
    let other = post(&server, &session, "/ui/login", "password=wrong").await.1;
    let shown = page(&server, &other, "/login").await;
    assert!(shown.contains("opens nothing here") && !shown.contains(over), "what was just said is said: {shown}");
}

#[tokio::test]
async fn a_wrong_token_says_so_and_leads_nowhere_else() {
    let server = Server::start().await;
    let (to, cookies) = post(&server, "", "/ui/login", "password=wrong&next=//evil.example").await;
    assert_eq!(to, "/login?next=/");
    let shown = page(&server, &cookies, &to).await;
    assert!(shown.contains("opens nothing here"));
    assert!(!page(&server, &cookies, &to).await.contains("opens nothing here"), "it is said once");
}

#[tokio::test]
async fn a_job_is_submitted_watched_and_cancelled_by_forms() {
    let server = Server::start().await;
    server.config("digits").await;
    let session = log_in(&server).await;
    assert!(page(&server, &session, "/train").await.contains("digits"));
    let (to, cookies) =
        post(&server, &session, "/ui/jobs", "config=digits&target=worker&labels=&labels=team%3Dnlp&gpus=").await;
    assert!(to.starts_with("/jobs/j_"), "{to}");
    let shown = page(&server, &cookies, &to).await;
    assert!(shown.contains("digits"));
    assert!(page(&server, &session, "/jobs").await.contains(&to));
    let job = to.trim_start_matches("/jobs/");
    for (form, priority) in [("priority=33&back=/jobs?phase=waiting", 33), ("top=true&priority=7", 50)] {
        let (back, _) = post(&server, &session, &format!("/ui{to}/priority"), form).await;
        assert_eq!(back, if priority == 33 { "/jobs?phase=waiting" } else { to.as_str() });
        assert_eq!(server.job(job).await["priority"], priority);
    }
    let (back, cookies) = post(&server, &session, &format!("/ui{to}/priority"), "priority=51").await;
    assert!(page(&server, &cookies, &back).await.contains("0 to 50"));
    assert!(page(&server, &session, &format!("{to}/cancel?back=javascript:x")).await.contains("value=\"/jobs/"));
    let (back, _) = post(&server, &session, &format!("/ui{to}/cancel"), "back=//evil.example").await;
    assert_eq!(back, "/", "it leads nowhere else");
    assert_eq!(server.status_of(job).await, "cancelled");
    assert_eq!(server.job(job).await["worker_labels"], json!({"team": "nlp"}), "of several fields with one name");
    let (again, _) = post(&server, &session, &format!("/ui{to}/retry"), "").await;
    assert_eq!(server.job(again.trim_start_matches("/jobs/")).await["retry_of"], job);
    for view in ["", "?show=samples", "?show=files", "/configuration", "/events"] {
        assert!(page(&server, &session, &format!("{to}{view}")).await.contains("digits"), "{view}");
    }
    let (back, cookies) = post(&server, &session, "/ui/jobs", "config=nope&target=worker&gpus=many").await;
    assert_eq!(back, "/train");
    assert!(page(&server, &cookies, &back).await.contains("`gpus` must be"));
}

#[tokio::test]
async fn every_page_is_whole_and_escapes_what_workers_say() {
    let server = Server::start().await;
    let (id, key) = server.worker("<script>alert(1)</script>").await;
    let hostile = serde_json::json!({"protocol": 1, "host": "<img src=x onerror=alert(1)>", "gpu_count": 1,
        "gpu_name": "\"><script>alert(2)</script>", "labels": {"<b>": "</textarea><script>alert(3)</script>"}});
    server.post(&key, "/api/workers/register", hostile).await.ok(200);
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
        assert!(
            !text.contains("<script>alert") && !text.contains("<img src=x"),
            "{path} says what workers say as text"
        );
    }
}

#[tokio::test]
async fn a_host_that_takes_no_job_says_why_wherever_it_is_shown() {
    let server = Server::start().await;
    let cookies = log_in(&server).await;
    let (id, key) = server.worker("cpu-1").await;
    let body =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "unfit": "the disk of <b> is full"});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    let words = "Its agent takes no new job: the disk of &lt;b&gt; is full. It takes";
    let shown = page(&server, &cookies, &format!("/admin/workers/{id}")).await;
    assert!(shown.contains("Not fit for jobs") && shown.matches(words).count() >= 2, "beside the status, and below");
    assert!(page(&server, &cookies, "/admin/workers").await.contains("Not fit for jobs"));
    server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
    let gone = page(&server, &cookies, &format!("/admin/workers/{id}")).await;
    assert!(!gone.contains("Not fit for jobs") && !gone.contains(words), "how one does that is gone, nobody knows");
}

#[tokio::test]
async fn what_is_not_there_is_a_page_of_its_own() {
    let server = Server::start().await;
    let session = log_in(&server).await;
    let job = format!("/jobs/{}", app::domain::ids::JobId::new(server.app.core.now(), server.app.core.entropy()));
    let unknown = ["/admin/workers/w_none", "/admin/workers/w_none/jobs", "/jobs/x/events"];
    for path in ["/jobs/j_none", "/jobs/x/log", &job].into_iter().chain(unknown) {
        let answer = server.get(&By::Cookie(session.clone()), path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        let text = answer.text();
        assert!(text.contains("</html>") && text.contains("class=\"sidebar\""), "{path}: {text}");
        assert_eq!(text.matches("id=\"content\"").count(), 1, "{path}: {text}");
    }
    let odd = server.get(&By::Cookie(session), "/admin/workers/%2e/events").await;
    assert_eq!(odd.status, StatusCode::NOT_FOUND);
    let request =
        Request::builder().method("POST").uri("/nowhere").header("host", "localhost:8001").body(Body::empty());
    assert_eq!(read(server.send(request.expect("a request")).await).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_theme_is_kept_in_a_cookie() {
    let server = Server::start().await;
    let (to, cookies) = post(&server, "", "/ui/preferences", "theme=light&next=/login").await;
    assert_eq!((to.as_str(), cookies.trim_start_matches("; ")), ("/login", "theme=light"));
    assert!(page(&server, &cookies, "/login").await.contains("data-theme=\"light\""));
}

#[tokio::test]
async fn density_is_there_before_the_first_paint_and_no_choice_leads_away() {
    let server = Server::start().await;
    let session = log_in(&server).await;
    assert!(!page(&server, &session, "/jobs").await.contains("is-compact"));
    let (to, cookies) = post(&server, &session, "/ui/preferences", "density=compact&next=/jobs").await;
    assert_eq!(to, "/jobs");
    assert!(page(&server, &cookies, &to).await.contains("class=\"is-compact\""));
    assert!(
        server.get(&By::Cookie(cookies), "/secrets").await.text().contains("class=\"is-plain has-help is-compact\"")
    );
    let (to, cookies) = post(&server, "", "/ui/preferences", "density=no&next=//evil.example").await;
    assert_eq!((to.as_str(), cookies.as_str()), ("/", ""));
}

#[tokio::test]
async fn an_address_can_ask_but_not_act() {
    let server = Server::start().await;
    let session = log_in(&server).await;
    let (id, _) = server.worker("gpu-1").await;
    let path = format!("/admin/workers/{id}");
    assert!(!page(&server, &session, &path).await.contains("<details open class=\"confirm\""));
    let asked = page(&server, &session, &format!("{path}?ask=drain")).await;
    assert!(asked.contains("<details open class=\"confirm\""), "{asked}");
    let worker = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!(worker["draining"], false);
}

#[tokio::test]
async fn the_language_is_kept_in_a_cookie_and_else_what_the_browser_accepts() {
    let server = Server::start().await;
    let (to, cookies) = post(&server, "", "/ui/preferences", "language=pt-BR&next=/login").await;
    assert_eq!((to.as_str(), cookies.trim_start_matches("; ")), ("/login", "language=pt-BR"));
    assert!(page(&server, &cookies, "/login").await.contains("<html lang=\"pt-BR\""));
    for (accepted, tag) in [("ja,en;q=0.5", "ja"), ("fr", "en")] {
        let request =
            Request::builder().uri("/login").header("host", "localhost:8001").header("accept-language", accepted);
        let answer = read(server.send(request.body(Body::empty()).expect("a request")).await).await;
        assert!(answer.text().contains(&format!("<html lang=\"{tag}\"")), "{accepted}");
    }
}

#[tokio::test]
async fn people_are_added_changed_and_shut_out_by_forms() {
    let server = Server::start().await;
    let session = log_in(&server).await;
    let form = "name=ada&role=researcher&password=correct-horse-battery";
    let (to, cookies) = post(&server, &session, "/ui/users", form).await;
    assert_eq!(to, "/admin/users");
    let shown = page(&server, &cookies, &to).await;
    assert!(shown.contains("It is changed") && shown.contains(">ada<"), "{shown}");
    let (_, refused) = post(&server, &session, "/ui/users", form).await;
    assert!(page(&server, &refused, &to).await.contains("is there already"));
    assert!(!page(&server, &refused, &to).await.contains("correct-horse"), "a password is never shown again");
    let (_, refused) = post(&server, &session, "/ui/users", "name=eve&role=queen").await;
    assert!(page(&server, &refused, &to).await.contains("viewer, researcher, lead or admin"));

    let ada = server.id_of("ada").await;
    let one = format!("/admin/users/{ada}");
    let theirs = server.log_in("ada", "correct-horse-battery").await.expect("let in");
    assert!(page(&server, &session, &one).await.contains("Shut out"));
    let (to, cookies) = post(&server, &session, &format!("/ui/users/{ada}"), "role=lead&let_in=on").await;
    assert_eq!(to, one);
    assert!(page(&server, &cookies, &one).await.contains("selected"));
    let (_, cookies) = post(&server, &session, &format!("/ui/users/{ada}/password"), "new=another-good-one").await;
    assert!(page(&server, &cookies, &one).await.contains("Their sessions ended and their API tokens were revoked."));
    server.get(&theirs, "/api/session").await.problem(401, "not_authenticated");
    let theirs = server.log_in("ada", "another-good-one").await.expect("let in");
    post(&server, &session, &format!("/ui/users/{ada}"), "role=lead").await;
    server.get(&theirs, "/api/session").await.problem(401, "not_authenticated");
    assert!(page(&server, &session, "/admin/users").await.contains("not let in"));
    assert!(page(&server, &session, &one).await.contains("Let in again"));

    let admin = server.id_of("admin").await;
    let (to, cookies) = post(&server, &session, &format!("/ui/users/{admin}"), "role=viewer&let_in=on").await;
    assert!(page(&server, &cookies, &to).await.contains("the last admin"));
    let answer = server.get(&By::Cookie(session), "/admin/users/u_none").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_secret_is_kept_and_removed_by_forms() {
    let server = Server::start().await;
    let session = log_in(&server).await;
    let (to, cookies) = post(&server, &session, "/ui/secrets", "name=hf_token&value=hf_0123456789").await;
    let shown = page(&server, &cookies, &to).await;
    assert!(shown.contains("HF_TOKEN") && !shown.contains("hf_0123456789"), "{shown}");
    post(&server, &session, "/ui/secrets", "name=WANDB_API_KEY&value=wandb_0123456789&shared=on").await;
    let listed = server.get(&By::Admin, "/api/secrets").await.ok(200);
    assert_eq!((&listed["secrets"][0]["shared"], &listed["secrets"][1]["shared"]), (&false.into(), &true.into()));
    let (to, cookies) = post(&server, &session, "/ui/secrets", "name=PATH&value=hf_0123456789").await;
    let shown = page(&server, &cookies, &to).await;
    assert!(shown.contains("no name of a secret") && !shown.contains("hf_0123456789"), "{shown}");
    post(&server, &session, "/ui/secrets/HF_TOKEN/remove", "").await;
    post(&server, &session, "/ui/secrets/WANDB_API_KEY/remove", "shared=on").await;
    assert_eq!(server.get(&By::Admin, "/api/secrets").await.ok(200)["secrets"], serde_json::json!([]));

    let By::Cookie(leo) = server.person("leo", "lead").await else { panic!("a browser") };
    let (to, cookies) = post(&server, &leo, "/ui/secrets", "name=A_KEY&value=0123456789&shared=on").await;
    assert!(page(&server, &cookies, &to).await.contains("secret.manage"));
    assert!(!page(&server, &leo, "/secrets").await.contains("name=\"shared\""));
}

#[tokio::test]
async fn who_may_not_hurry_is_told_before_and_after() {
    let server = Server::start().await;
    server.config("digits").await;
    let By::Cookie(cookie) = server.person("eve", "researcher").await else { panic!("a session") };
    let shown = page(&server, &cookie, "/train?config=digits&priority=11").await;
    assert!(shown.contains("queue.manage"), "{shown}");
    let (back, cookies) = post(&server, &cookie, "/ui/jobs", "config=digits&priority=11").await;
    assert_eq!(back, "/train");
    assert!(page(&server, &cookies, &back).await.contains("queue.manage"));
    assert_eq!(server.get(&By::Admin, "/api/queue").await.ok(200)["total"], 0, "nothing was submitted");
    assert!(post(&server, &cookie, "/ui/jobs", "config=digits&priority=10").await.0.starts_with("/jobs/j_"));
}

#[tokio::test]
async fn every_page_but_the_login_has_a_program() {
    let server = Server::start().await;
    server.config("digits").await;
    assert!(!page(&server, "", "/login").await.contains("modulepreload"));
    let session = log_in(&server).await;
    for path in ["/", "/train", "/configs/digits", "/secrets", "/admin/audit"] {
        assert!(page(&server, &session, path).await.contains("modulepreload"), "{path}");
    }
}

#[tokio::test]
async fn what_is_said_once_is_said_by_the_page_that_is_opened_and_not_to_its_program() {
    let server = Server::start().await;
    let session = log_in(&server).await;
    let (to, cookies) = post(&server, &session, "/ui/secrets", "name=HF_TOKEN&value=hf_0123456789").await;
    let asks = axum::http::Request::get(&to).header("cookie", &cookies).header("x-simpletuner-parts", "1");
    let parts = read(server.send(asks.body(axum::body::Body::empty()).expect("a request")).await).await.text();
    assert!(parts.contains("HF_TOKEN") && !parts.contains("The secret is kept"));
    assert!(page(&server, &cookies, &to).await.contains("The secret is kept"));
}
