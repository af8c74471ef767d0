//! The search of the list of jobs: the index follows every change, and queries see only what the user may see.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::service::policy::job_retention::JobRetention;
use crate::tests::harness::{Actor, TestServer};

/// The jobs that a query finds, in order.
async fn found(server: &TestServer, actor: &Actor, query: &str) -> Vec<String> {
    let query: Vec<_> = query.split('&').map(|pair| pair.split_once('=').expect("a pair")).collect();
    let query = serde_urlencoded::to_string(query).expect("pairs");
    let page = server.get(actor, &format!("/api/queue?{query}")).await.expect_status(200);
    let jobs = page["jobs"].as_array().expect("a list").iter();
    let ids: Vec<_> = jobs.map(|job| job["job_id"].as_str().expect("text").to_owned()).collect();
    assert_eq!(page["total"], ids.len(), "{query}");
    ids
}

async fn report_progress(server: &TestServer, key: &Actor, job: &str, point: Value) {
    let body = json!({"attempt": 1, "points": [point]});
    server.post(key, &format!("/api/workers/job/{job}/progress"), body).await.expect_status(200);
}

async fn put_config(server: &TestServer, name: &str, config: &Value) {
    let body = json!({"files": {"config.json": config.to_string()}}).to_string();
    server.call(&Actor::Admin, "PUT", &format!("/api/configs/{name}"), body).await.expect_status(200);
}

#[tokio::test]
async fn each_change_of_a_job_is_found_at_once() {
    let days = |days: i64| Some(Millis(days * 86_400_000));
    let retention = JobRetention { logs: None, artifacts: None, jobs: days(1), artifact_bytes: None };
    let server = TestServer::start_with(|policy| policy.retention = retention).await;
    server.put_config("digits").await;
    let admin = Actor::Admin;
    assert_eq!(found(&server, &admin, "q=status:active").await, [] as [String; 0]);
    let job = server.submit("digits").await;
    assert_eq!(found(&server, &admin, "q=status:queued attempts:0").await, std::slice::from_ref(&job));
    let description = json!({"name": "Erster Versuch", "tags": ["ablation"]}).to_string();
    server.call(&admin, "PATCH", &format!("/api/queue/{job}"), description).await.expect_status(200);
    assert_eq!(found(&server, &admin, "q=versuch tag:abl* #1").await, std::slice::from_ref(&job));
    let (worker, key, mut events) = server.connect_worker("gpu-1").await;
    events.next_offer().await;
    assert_eq!(found(&server, &admin, "q=worker:gpu-1 -status:ended").await, std::slice::from_ref(&job));
    for status in ["starting", "running"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    report_progress(&server, &key, &job, json!({"step": 5, "at": "2024-01-15T10:30:00Z", "loss": 0.5})).await;
    assert_eq!(found(&server, &admin, "q=loss>=0.5 metric.step:5").await, std::slice::from_ref(&job));
    server.clock.advance(Millis(7_200_000));
    assert_eq!(found(&server, &admin, "q=duration>=2h submitted<-90m").await, std::slice::from_ref(&job));
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    assert_eq!(found(&server, &admin, &format!("q=status:completed worker:{worker}")).await, [job]);
    server.clock.advance(Millis(2 * 86_400_000));
    server.app.services.jobs.prune_jobs().await.expect("a database");
    assert_eq!(found(&server, &admin, "q=status:ended").await, [] as [String; 0]);
}

#[tokio::test]
async fn jobs_are_searched_and_sorted_by_metrics_and_configuration() {
    let server = TestServer::start().await;
    put_config(&server, "flux", &json!({"--lora_rank": 16, "learning_rate": "1e-4", "model": {"type": "lora"}})).await;
    put_config(&server, "sdxl", &json!({"lora_rank": 64, "learning_rate": 1e-5})).await;
    let (flux, sdxl) = (server.submit("flux").await, server.submit("sdxl").await);
    let overridden = json!({"config_name": "sdxl", "overrides": {"lora_rank": 4}});
    let overridden = server.post(&Actor::Admin, "/api/queue/submit", overridden).await.expect_status(201);
    let overridden = overridden["job_id"].as_str().expect("text").to_owned();
    let admin = Actor::Admin;
    assert_eq!(found(&server, &admin, "q=lora_rank>=16").await, [sdxl.clone(), flux.clone()]);
    assert_eq!(found(&server, &admin, "q=lora_rank<16").await, std::slice::from_ref(&overridden));
    assert_eq!(found(&server, &admin, "q=config.model.type:lora").await, std::slice::from_ref(&flux));
    assert_eq!(found(&server, &admin, "q=learning_rate>5e-5").await, std::slice::from_ref(&flux));
    let by_rank = [sdxl.clone(), flux.clone(), overridden.clone()];
    assert_eq!(found(&server, &admin, "sort=-config.lora_rank").await, by_rank);
    assert_eq!(found(&server, &admin, "sort=config").await, [flux.clone(), overridden.clone(), sdxl.clone()]);
    // A new revision of a configuration is read when a job uses it.
    put_config(&server, "flux", &json!({"lora_rank": 1})).await;
    let newest = server.submit("flux").await;
    assert_eq!(found(&server, &admin, "q=lora_rank<=1").await, [newest]);
}

#[tokio::test]
async fn days_of_a_search_are_in_the_readers_time_zone() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    // It is 2024-01-15T10:30:00Z.
    let job = server.submit("digits").await;
    let on = |day: &str, zone: &str| format!("q=submitted:{day}&zone={zone}");
    for (day, zone, is_found) in [
        ("2024-01-15", "UTC", true),
        ("2024-01-15", "Middle/Earth", true),
        ("2024-01-16", "Pacific/Kiritimati", true),
        ("2024-01-15", "Pacific/Kiritimati", false),
        ("2024-01-14", "Pacific/Pago_Pago", true),
    ] {
        let expected: &[String] = if is_found { std::slice::from_ref(&job) } else { &[] };
        assert_eq!(found(&server, &Actor::Admin, &on(day, zone)).await, expected, "{day} in {zone}");
    }
    let Actor::Cookie(browser) = server.add_user("vic", "viewer").await else { panic!("a browser") };
    let list = async |day: &str| {
        let cookies = format!("{browser}; time_zone=Pacific/Kiritimati");
        let page = server.get(&Actor::Cookie(cookies), &format!("/jobs?q=submitted:{day}")).await.text();
        page.contains("<tbody")
    };
    assert!(list("2024-01-16").await && !list("2024-01-15").await);
}

#[tokio::test]
async fn pages_continue_after_the_last_job_in_each_order() {
    let server = TestServer::start().await;
    for name in ["b", "a", "c"] {
        server.put_config(name).await;
        server.submit(name).await;
        server.submit(name).await;
    }
    for sort in ["submitted", "-submitted", "config", "-config", "queue", "user", "-metric.loss", "status"] {
        let all = found(&server, &Actor::Admin, &format!("sort={sort}")).await;
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/queue?sort={sort}&limit=4{cursor}");
            let page = server.get(&Actor::Admin, &path).await.expect_status(200);
            let jobs = page["jobs"].as_array().expect("a list").iter();
            paged.extend(jobs.map(|job| job["job_id"].as_str().expect("text").to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&{}", serde_urlencoded::to_string([("cursor", next)]).expect("a pair"));
        }
        assert_eq!(paged, all, "{sort}");
        assert_eq!(all.len(), 6);
    }
    let job = found(&server, &Actor::Admin, "sort=config").await.remove(0);
    for (query, problem) in [("sort=age", "out_of_range"), ("sort=queue&cursor=j_1", "out_of_range")] {
        server.get(&Actor::Admin, &format!("/api/queue?{query}")).await.expect_problem(422, problem);
    }
    server.get(&Actor::Admin, &format!("/api/queue?cursor={job}~t1")).await.expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn queries_without_meaning_are_rejected_with_the_term() {
    let server = TestServer::start().await;
    let viewer = server.add_user("vic", "viewer").await;
    for (query, why, word) in [
        ("color:red", "key", "color:red"),
        ("loss<low", "value", "loss<low"),
        ("flux status:asleep", "value", "status:asleep"),
        ("tag:", "empty", "tag:"),
        ("\"open", "quote", "open"),
        (&"a ".repeat(33), "terms", ""),
    ] {
        let query = serde_urlencoded::to_string([("q", query)]).expect("a pair");
        let problem =
            server.get(&Actor::Admin, &format!("/api/queue?{query}")).await.expect_problem(422, "invalid_search");
        assert_eq!((problem["why"].as_str(), problem["word"].as_str()), (Some(why), Some(word)));
        let page = server.get(&viewer, &format!("/jobs?{query}")).await.text();
        assert!(page.contains("id=\"q\"") && page.contains("role=\"search\""), "the search can be corrected: {page}");
    }
}

#[tokio::test]
async fn a_search_finds_only_what_the_user_may_see() {
    let server = TestServer::start().await;
    put_config(&server, "flux", &json!({"secret_recipe": 7})).await;
    let ada = server.add_user("ada", "researcher").await;
    let job = server.submit("flux").await;
    let own = server.post(&ada, "/api/queue/submit", json!({"config_name": "flux"})).await.expect_status(201);
    let own = own["job_id"].as_str().expect("text").to_owned();
    assert_eq!(found(&server, &Actor::Admin, "q=secret_recipe>6").await, [own.clone(), job.clone()]);
    let bob = server.add_user("bob", "researcher").await;
    let token = json!({"name": "own", "scopes": ["job.view.own"]});
    let token = server.post(&bob, "/api/account/tokens", token).await.expect_status(201);
    let scoped = Actor::Token(token["secret"].as_str().expect("text").to_owned());
    for query in ["q=config.secret_recipe%3D7", "sort=config.secret_recipe"] {
        server.get(&scoped, &format!("/api/queue?{query}")).await.expect_problem(403, "permission_denied");
    }
    assert_eq!(found(&server, &scoped, "q=flux").await, [] as [String; 0]);
    let bobs = server.post(&bob, "/api/queue/submit", json!({"config_name": "flux"})).await.expect_status(201);
    let bobs = bobs["job_id"].as_str().expect("text");
    assert_eq!(found(&server, &scoped, "q=flux").await, [bobs]);
    assert_eq!(found(&server, &bob, "q=secret_recipe>6 user:bob").await, [bobs]);
    assert_eq!(found(&server, &scoped, "q=secret_recipe>6").await, [] as [String; 0], "a metric, or nothing");
}

#[tokio::test]
async fn a_search_is_completed_with_what_the_user_may_see() {
    let server = TestServer::start().await;
    put_config(&server, "flux", &json!({"lora_rank": 16})).await;
    server.submit("flux").await;
    let completions = async |actor: &Actor, text: &str| {
        let query = serde_urlencoded::to_string([("q", text)]).expect("a pair");
        let page = server.get(actor, &format!("/api/queue/completions?{query}")).await.expect_status(200);
        serde_json::from_value::<Vec<String>>(page["completions"].clone()).expect("texts")
    };
    let admin = Actor::Admin;
    assert_eq!(
        completions(&admin, "status:failed con").await[..2],
        ["status:failed config:", "status:failed config.lora_rank:"]
    );
    assert_eq!(completions(&admin, "config:fl").await, ["config:flux"]);
    assert_eq!(completions(&admin, "config.lora_rank:").await, ["config.lora_rank:16"]);
    assert_eq!(completions(&admin, &"x".repeat(1_001)).await, [] as [String; 0]);
    let bob = server.add_user("bob", "researcher").await;
    let token = json!({"name": "own", "scopes": ["job.view.own"]});
    let token = server.post(&bob, "/api/account/tokens", token).await.expect_status(201);
    let scoped = Actor::Token(token["secret"].as_str().expect("text").to_owned());
    assert_eq!(completions(&scoped, "config:fl").await, [] as [String; 0]);
    assert_eq!(completions(&scoped, "lora_rank").await, [] as [String; 0]);
}

#[tokio::test]
async fn all_jobs_that_match_are_exported() {
    let server = TestServer::start_with(|policy| policy.usage_limits.waiting_jobs_per_user = 2_000).await;
    server.put_config("digits").await;
    let named = json!({"config_name": "digits", "name": "=1+1", "tags": ["a", "b"]});
    let named = server.post(&Actor::Admin, "/api/queue/submit", named).await.expect_status(201)["job_id"].clone();
    // More than are read at a time.
    for _ in 0..1_005 {
        server.submit("digits").await;
    }
    let csv = server.get(&Actor::Admin, "/api/queue/export?sort=submitted&limit=1").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let text = csv.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1_007);
    let id = named.as_str().expect("text");
    assert!(lines[1].starts_with(&format!("{id},'=1+1,digits,1,1,a; b,admin,queued,")), "{}", lines[1]);
    assert_eq!(lines[1].split(',').count(), lines[0].split(',').count());
    let found = server.get(&Actor::Admin, "/api/queue/export/json?q=tag:a").await.text();
    let job: Value = serde_json::from_str(&found).expect("one line");
    assert_eq!((&job["job_id"], &job["name"]), (&named, &json!("=1+1")));
    server.get(&Actor::Admin, "/api/queue/export?q=color:red").await.expect_problem(422, "invalid_search");
    let bob = server.add_user("bob", "researcher").await;
    let token = json!({"name": "own", "scopes": ["job.view.own"]});
    let token = server.post(&bob, "/api/account/tokens", token).await.expect_status(201);
    let scoped = Actor::Token(token["secret"].as_str().expect("text").to_owned());
    assert_eq!(server.get(&scoped, "/api/queue/export").await.text().lines().count(), 1, "the header");
}
