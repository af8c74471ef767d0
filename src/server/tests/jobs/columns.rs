//! The columns and groups of the list of jobs, saved views of it, and stars.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

async fn put_config(server: &TestServer, name: &str, config: &Value) {
    let body = json!({"files": {"config.json": config.to_string()}}).to_string();
    server.call(&Actor::Admin, "PUT", &format!("/api/configs/{name}"), body).await.expect_status(200);
}

async fn save_view(server: &TestServer, actor: &Actor, name: &str, view: Value) -> crate::tests::harness::TestResponse {
    server.call(actor, "PUT", &format!("/api/queue/views/{name}"), view.to_string()).await
}

/// Names and owners of the views that a user sees.
async fn views(server: &TestServer, actor: &Actor) -> Vec<(String, String)> {
    let found = server.get(actor, "/api/queue/views").await.expect_status(200);
    let text = |view: &Value, field: &str| view[field].as_str().expect("text").to_owned();
    found["views"].as_array().expect("a list").iter().map(|view| (text(view, "name"), text(view, "owner"))).collect()
}

#[tokio::test]
async fn a_list_has_the_values_of_its_columns() {
    let server = TestServer::start().await;
    put_config(&server, "flux", &json!({"learning_rate": "1e-5", "model": {"rank": 16}, "seed": 1})).await;
    let submit = json!({"config_name": "flux", "overrides": {"seed": 7}});
    let job = server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_status(201);
    let job = job["job_id"].as_str().expect("text").to_owned();
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    events.next_offer().await;
    for status in ["starting", "running"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    let point = json!({"step": 5, "at": "2024-01-15T10:30:00Z", "loss": 0.25});
    let body = json!({"attempt": 1, "points": [point]});
    let progress = format!("/api/workers/job/{job}/progress");
    server.post(&key, &progress, body).await.expect_status(200);

    let columns = "status,metric.loss,metric.other,config.learning_rate,config.model.rank,config.seed";
    let query = serde_urlencoded::to_string([("columns", columns)]).expect("a pair");
    let page = server.get(&Actor::Admin, &format!("/api/queue?{query}")).await.expect_status(200);
    let expected = json!({
        "metric.loss": 0.25, "config.learning_rate": "1e-5", "config.model.rank": "16", "config.seed": "7",
    });
    assert_eq!(page["jobs"][0]["values"], expected);
    assert!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["jobs"][0].get("values").is_none());

    let csv = server.get(&Actor::Admin, &format!("/api/queue/export?{query}")).await.text();
    let mut lines = csv.lines();
    assert!(
        lines.next().is_some_and(|line| line.ends_with(",config.learning_rate,config.model.rank,config.seed")),
        "{csv}"
    );
    assert!(lines.next().is_some_and(|line| line.ends_with(",1e-5,16,7")), "{csv}");

    let point = json!({"step": 6, "at": "2024-01-15T10:31:00Z", "loss_is_nan": true});
    server.post(&key, &progress, json!({"attempt": 1, "points": [point]})).await.expect_status(200);
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let columns = "metric.loss,metric.best.loss,metric.best_step.loss";
    let page = server.get(&Actor::Admin, &format!("/api/queue?columns={columns}&q=best.loss%3C0.3")).await;
    let expected = json!({"metric.loss": "NaN", "metric.best.loss": 0.25, "metric.best_step.loss": 5.0});
    assert_eq!(page.expect_status(200)["jobs"][0]["values"], expected);

    let known = server.get(&Actor::Admin, "/api/queue/columns").await.expect_status(200);
    let known: Vec<&str> = known["columns"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for column in ["status", "tags", "metric.loss", "config.model.rank", "config.seed"] {
        assert!(known.contains(&column), "{column}: {known:?}");
    }
    for (columns, allowed) in [("status,nonsense", "time_left"), ("metric.", "config.KEY")] {
        let problem = server.get(&Actor::Admin, &format!("/api/queue?columns={columns}")).await;
        let problem = problem.expect_problem(422, "out_of_range");
        assert!(problem["detail"].as_str().is_some_and(|text| text.contains(allowed)), "{problem}");
    }
    let sort = server.get(&Actor::Admin, "/api/queue?sort=seen").await.expect_problem(422, "out_of_range");
    assert!(
        sort["detail"].as_str().is_some_and(|text| text.contains("duration") && text.contains("metric.NAME")),
        "{sort}"
    );
}

#[tokio::test]
async fn columns_of_configurations_need_the_permission() {
    let server = TestServer::start().await;
    put_config(&server, "flux", &json!({"secret_recipe": 7})).await;
    let bob = server.add_user("bob", "researcher").await;
    server.post(&bob, "/api/queue/submit", json!({"config_name": "flux"})).await.expect_status(201);
    let token = json!({"name": "own", "scopes": ["job.view.own"]});
    let token = server.post(&bob, "/api/account/tokens", token).await.expect_status(201);
    let scoped = Actor::Token(token["secret"].as_str().expect("text").to_owned());
    let with_recipe = "/api/queue?columns=config.secret_recipe";
    server.get(&scoped, with_recipe).await.expect_problem(403, "permission_denied");
    let page = server.get(&bob, with_recipe).await.expect_status(200);
    assert_eq!(page["jobs"][0]["values"], json!({"config.secret_recipe": "7"}));
    let known = server.get(&scoped, "/api/queue/columns").await.expect_status(200);
    assert!(!known.to_string().contains("secret_recipe"), "{known}");
}

#[tokio::test]
async fn views_are_saved_shared_and_deleted() {
    let server = TestServer::start().await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "viewer").await);
    let lead = server.add_user("lea", "lead").await;
    let failed = json!({"query": "?status=failed&cursor=x&limit=5&sort=-duration&q=loss%3C1"});
    let view = save_view(&server, &ada, "Failed%20ones", failed).await.expect_status(200);
    assert_eq!(view["query"], "status=failed&q=loss%3C1&sort=-duration");
    save_view(&server, &ada, "Team", json!({"query": "", "shared": true})).await.expect_status(200);
    save_view(&server, &eve, "Mine", json!({"query": "tag=x"})).await.expect_status(200);
    let pair = |name: &str, owner: &str| (name.to_owned(), owner.to_owned());
    assert_eq!(views(&server, &ada).await, [pair("Failed ones", "ada"), pair("Team", "ada")]);
    assert_eq!(views(&server, &eve).await, [pair("Mine", "eve"), pair("Team", "ada")]);

    // A viewer shares nothing, and deletes only their own.
    save_view(&server, &eve, "All", json!({"query": "", "shared": true}))
        .await
        .expect_problem(403, "permission_denied");
    let delete =
        async |actor: &Actor, path: &str| server.call(actor, "DELETE", &format!("/api/queue/views/{path}"), "").await;
    delete(&eve, "Team?owner=ada").await.expect_problem(403, "permission_denied");
    delete(&eve, "Failed%20ones?owner=ada").await.expect_problem(404, "view_not_found");
    delete(&lead, "Failed%20ones?owner=ada").await.expect_problem(404, "view_not_found");
    delete(&eve, "Mine").await.expect_status(200);
    delete(&lead, "Team?owner=ada").await.expect_status(200);
    assert_eq!(views(&server, &eve).await, []);
    delete(&ada, "Team").await.expect_problem(404, "view_not_found");
}

#[tokio::test]
async fn an_invalid_view_is_not_saved() {
    let server = TestServer::start().await;
    let admin = Actor::Admin;
    for (name, query, code) in [
        ("%20", "", "out_of_range"),
        ("a%E2%80%AEb", "", "out_of_range"),
        (&*"x".repeat(65), "", "out_of_range"),
        ("x", "limit=many", "out_of_range"),
        ("x", "status=nonsense", "out_of_range"),
        ("x", "columns=nonsense", "out_of_range"),
        ("x", &*format!("q={}", "y".repeat(8_000)), "out_of_range"),
        ("x", "q=gpus:many", "invalid_search"),
    ] {
        save_view(&server, &admin, name, json!({"query": query})).await.expect_problem(422, code);
    }
    for number in 0..100 {
        save_view(&server, &admin, &number.to_string(), json!({"query": ""})).await.expect_status(200);
    }
    save_view(&server, &admin, "one-more", json!({"query": ""})).await.expect_problem(422, "too_large");
    save_view(&server, &admin, "99", json!({"query": "tag=x"})).await.expect_status(200);
}

#[tokio::test]
async fn jobs_are_starred_by_each_user_for_themselves() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "viewer").await);
    let (job, other) = (server.submit("digits").await, server.submit("digits").await);
    let star = async |actor: &Actor, method: &str, job: &str| {
        server.call(actor, method, &format!("/api/queue/{job}/star"), "{}").await
    };
    for _ in 0..2 {
        star(&ada, "PUT", &job).await.expect_status(200);
    }
    star(&eve, "PUT", &other).await.expect_status(200);
    let found = async |actor: &Actor, query: &str| {
        let page = server.get(actor, &format!("/api/queue?q={query}")).await.expect_status(200);
        let jobs = page["jobs"].as_array().expect("a list").iter();
        jobs.map(|job| job["job_id"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&ada, "starred:me").await, std::slice::from_ref(&job));
    assert_eq!(found(&eve, "starred:me").await, std::slice::from_ref(&other));
    assert_eq!(found(&eve, "starred:ada").await, std::slice::from_ref(&job));
    assert_eq!(found(&Actor::Admin, "-starred:me").await, [other.clone(), job.clone()]);
    let view = server.get(&ada, &format!("/api/queue/{job}")).await.expect_status(200);
    assert_eq!(view["starred_by"], json!(["ada"]));
    star(&ada, "DELETE", &job).await.expect_status(200);
    assert_eq!(found(&ada, "starred:me").await, [] as [String; 0]);
    star(&ada, "PUT", "j_none").await.expect_problem(404, "job_not_found");

    // A star survives what happens to the job.
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    events.next_offer().await;
    star(&eve, "PUT", &job).await.expect_status(200);
    for status in ["starting", "running", "completed"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    assert_eq!(found(&eve, "starred:me%20status:completed").await, [job]);
}

#[tokio::test]
async fn jobs_are_grouped() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    for name in ["flux", "sdxl"] {
        put_config(&server, name, &json!({"a": 1})).await;
    }
    for (actor, config, tags) in
        [(&ada, "flux", vec!["x", "y"]), (&Actor::Admin, "flux", vec![]), (&Actor::Admin, "sdxl", vec!["x"])]
    {
        let submit = json!({"config_name": config, "tags": tags});
        server.post(actor, "/api/queue/submit", submit).await.expect_status(201);
    }
    let groups = async |query: &str| {
        let page = server.get(&Actor::Admin, &format!("/api/queue/groups?{query}")).await.expect_status(200);
        let groups = page["groups"].as_array().expect("a list").iter();
        let mut counts: Vec<_> = groups
            .map(|group| {
                (
                    group["value"].as_str().expect("text").to_owned(),
                    group["counts"]["waiting"].as_u64().expect("a number"),
                )
            })
            .collect();
        counts.sort();
        (counts, page["total"].as_u64().expect("a number"))
    };
    let named = |groups: &[(&str, u64)]| {
        let counts: Vec<_> = groups.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let total = counts.len() as u64;
        (counts, total)
    };
    assert_eq!(groups("").await, named(&[("flux", 2), ("sdxl", 1)]));
    assert_eq!(groups("group=user").await, named(&[("ada", 1), ("admin", 2)]));
    assert_eq!(groups("group=tag").await, named(&[("", 1), ("x", 2), ("y", 1)]));
    assert_eq!(groups("group=tag&q=config:flux&user=ada").await, named(&[("x", 1), ("y", 1)]));
    assert_eq!(groups("group=user&phase=ended").await, named(&[]));
    let (first, total) = groups("group=tag&limit=1").await;
    assert_eq!((first.len(), total), (1, 3));
    let page = server.get(&ada, "/api/queue/groups?q=gpus:many").await;
    page.expect_problem(422, "invalid_search");
}
