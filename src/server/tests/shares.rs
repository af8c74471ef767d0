//! Teams, limits, and who gets the next GPU.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{Actor, EventStreamReader, TestServer};
use super::ui::pages::{log_in, page};

const HOUR: Millis = Millis::from_secs(3_600);
const MINUTE: Millis = Millis(60_000);

async fn put(server: &TestServer, path: &str, body: Value) -> Value {
    server.call(&Actor::Admin, "PUT", path, body.to_string()).await.expect_status(200)
}

async fn create_team(server: &TestServer, name: &str, settings: Value, members: &[&str]) {
    let create = json!({"name": name, "settings": settings});
    server.post(&Actor::Admin, "/api/teams", create).await.expect_status(201);
    for member in members {
        put(server, &format!("/api/teams/{name}/members/{member}"), json!({})).await;
    }
}

async fn submit_as(server: &TestServer, actor: &Actor, fields: Value) -> String {
    let mut body = json!({"config_name": "digits"});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    let submitted = server.post(actor, "/api/queue/submit", body).await.expect_status(201);
    submitted["job_id"].as_str().expect("text").to_owned()
}

/// A worker with one GPU, which runs a job at a time.
async fn connect_gpu(server: &TestServer) -> (Actor, EventStreamReader) {
    let (_, key) = server.create_worker("gpu-1").await;
    let gpu = json!({"index": 0, "uuid": "GPU-0", "name": "A100", "vram_gb": 40.0});
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": [gpu], "max_jobs": 1});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let events = server.open_stream(&key).await;
    (key, events)
}

/// Runs what is offered for this time; returns who has submitted it.
async fn run_next(server: &TestServer, key: &Actor, events: &mut EventStreamReader, time: Millis) -> String {
    let offer = events.next_offer().await;
    let id = offer.job_id.as_str();
    server.report_status(key, id, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    pass(server, key, id, time).await;
    server.report_status(key, id, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    server.job(id).await["submitted_by"].as_str().expect("text").to_owned()
}

/// Lets time pass while a worker runs a job.
async fn pass(server: &TestServer, key: &Actor, job: &str, time: Millis) {
    for _ in 0..time.0 / MINUTE.0 {
        server.advance(MINUTE).await;
        server.heartbeat(key, json!([{"job_id": job, "attempt": 1}])).await;
    }
}

async fn shares(server: &TestServer) -> Value {
    server.get(&Actor::Admin, "/api/shares").await.expect_status(200)
}

#[tokio::test]
async fn a_flood_of_one_user_delays_another_by_one_job() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, bob) = (server.add_user("ada", "researcher").await, server.add_user("bob", "researcher").await);
    for _ in 0..40 {
        submit_as(&server, &ada, json!({})).await;
    }
    let (key, mut events) = connect_gpu(&server).await;
    let job = submit_as(&server, &bob, json!({})).await;
    assert_eq!(server.job(&job).await["queue_position"], 1, "the others are of a user who runs one already");
    let listed = server.get(&Actor::Admin, "/api/queue?status=queued").await.expect_status(200);
    assert_eq!(listed["jobs"][0]["queue_position"], 1);
    let ran = [
        run_next(&server, &key, &mut events, MINUTE).await,
        run_next(&server, &key, &mut events, MINUTE).await,
        run_next(&server, &key, &mut events, MINUTE).await,
    ];
    assert_eq!(ran, ["ada", "bob", "ada"]);
}

#[tokio::test]
async fn usage_is_charged_and_decides_who_comes_next() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, bob) = (server.add_user("ada", "researcher").await, server.add_user("bob", "researcher").await);
    create_team(&server, "vision", json!({"weight": 3}), &["ada"]).await;
    let (key, mut events) = connect_gpu(&server).await;
    submit_as(&server, &ada, json!({})).await;
    let offer = events.next_offer().await;
    let id = offer.job_id.as_str();
    server.report_status(&key, id, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    pass(&server, &key, id, HOUR).await;
    let live = shares(&server).await;
    assert_eq!(
        (&live["gpus"], &live["teams"][1]["name"]),
        (&json!(1), &json!("vision")),
        "default is owed more: {live}"
    );
    let hours = |share: &Value| share["month_gpu_hours"].as_f64().expect("a number");
    assert!((hours(&live["teams"][1]) - 1.0).abs() < 0.01, "what runs counts: {live}");
    assert_eq!(
        (&live["teams"][1]["running_gpus"], &live["teams"][1]["members"][0]["name"]),
        (&json!(1), &json!("ada"))
    );
    let report = json!({"status": "completed", "attempt": 1});
    server.report_status(&key, offer.job_id.as_str(), report).await.expect_status(200);
    let ended = shares(&server).await;
    assert!((hours(&ended["teams"][1]) - 1.0).abs() < 0.01 && ended["teams"][1]["running_gpus"] == 0, "{ended}");
    assert!((ended["teams"][1]["used_percent"].as_f64().expect("a number") - 100.0).abs() < 0.01);

    // Two jobs each: bob has used nothing.
    for actor in [&ada, &ada, &bob, &bob] {
        submit_as(&server, actor, json!({"target": "worker"})).await;
    }
    let first = run_next(&server, &key, &mut events, HOUR).await;
    // The offer went out before bob's submit.
    assert_eq!(first, "ada");
    assert_eq!(run_next(&server, &key, &mut events, MINUTE).await, "bob");
    assert_eq!(run_next(&server, &key, &mut events, MINUTE).await, "bob");
}

#[tokio::test]
async fn limits_of_a_team_hold_and_are_explained() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let ada = server.add_user("ada", "researcher").await;
    create_team(&server, "vision", json!({"max_running_jobs": 0, "max_waiting_jobs": 2}), &["ada"]).await;
    let (_key, mut events) = connect_gpu(&server).await;
    let job = submit_as(&server, &ada, json!({})).await;
    assert_eq!(server.job(&job).await["team"], "vision");
    let explained = server.get(&ada, &format!("/api/queue/{job}/explain")).await.expect_status(200);
    let share = json!({"team": "vision", "is_member": false, "kind": "running_jobs", "max": 0});
    assert_eq!((&explained["verdict"], &explained["limit"]["share"]), (&json!("limited"), &share));
    assert_eq!(explained["text"], "Team vision has reached its limit of running jobs (0).");
    submit_as(&server, &ada, json!({})).await;
    let rejected = server.post(&ada, "/api/queue/submit", json!({"config_name": "digits"})).await;
    let rejected = rejected.expect_problem(422, "limit_reached");
    assert!(
        rejected["detail"].as_str().is_some_and(|text| text.contains("Team vision has 2 queued jobs")),
        "{rejected}"
    );
    // Idle jobs are outside of all limits.
    let idle = submit_as(&server, &ada, json!({"class": "idle"})).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), idle);
    // A higher limit starts the first one when the GPU is free.
    put(&server, "/api/teams/vision", json!({"settings": {"max_running_jobs": 1}})).await;
    server.call(&ada, "POST", &format!("/api/queue/{idle}/cancel"), "").await.expect_status(200);
    assert_eq!(events.next_offer().await.job_id.as_str(), job);
    // Its jobs count for the default team when it is deleted.
    server.call(&Actor::Admin, "DELETE", "/api/teams/vision", "").await.expect_status(200);
    let after = shares(&server).await;
    assert_eq!((&after["teams"][0]["name"], &after["teams"][0]["running_jobs"]), (&json!("default"), &json!(1)));
}

#[tokio::test]
async fn classes_and_teams_need_permission() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, lead) = (server.add_user("ada", "researcher").await, server.add_user("lea", "lead").await);
    create_team(&server, "vision", json!({}), &[]).await;
    let submit = async |actor: &Actor, fields: Value| {
        let mut body = json!({"config_name": "digits"});
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        server.post(actor, "/api/queue/submit", body).await
    };
    let denied = submit(&ada, json!({"class": "urgent"})).await.expect_problem(403, "permission_denied");
    assert!(denied["detail"].as_str().is_some_and(|text| text.contains("job.urgent")), "{denied}");
    submit(&ada, json!({"class": "urgent", "dry_run": true})).await.expect_problem(403, "permission_denied");
    let urgent = submit(&lead, json!({"class": "urgent"})).await.expect_status(201);
    submit(&ada, json!({"team": "vision"})).await.expect_problem(403, "not_team_member");
    submit(&ada, json!({"team": "nope"})).await.expect_problem(404, "team_not_found");
    submit(&ada, json!({"team": "default"})).await.expect_status(201);

    // A retry by someone else is neither urgent nor for another's team.
    put(&server, "/api/teams/vision/members/lea", json!({})).await;
    let urgent = urgent["job_id"].as_str().expect("text");
    server.call(&lead, "POST", &format!("/api/queue/{urgent}/cancel"), "").await.expect_status(200);
    let retried = server.call(&ada, "POST", &format!("/api/queue/{urgent}/retry"), "").await.expect_status(201);
    let retried = server.job(retried["job_id"].as_str().expect("text")).await;
    assert_eq!((&retried["class"], &retried["team"]), (&json!("normal"), &json!("default")));
}

#[tokio::test]
async fn teams_are_validated() {
    let server = TestServer::start().await;
    server.add_user("ada", "researcher").await;
    let create = async |body: Value| server.post(&Actor::Admin, "/api/teams", body).await;
    for name in ["", "A", "a/b", "x y", &"x".repeat(33)] {
        create(json!({"name": name})).await.expect_problem(422, "out_of_range");
    }
    for settings in [json!({"weight": 0}), json!({"weight": 10_001}), json!({"max_gpus": 1_000_001})] {
        create(json!({"name": "vision", "settings": settings})).await.expect_problem(422, "out_of_range");
    }
    for weight in [json!("heavy"), json!(1.5), json!(-1), json!(null)] {
        create(json!({"name": "vision", "settings": {"weight": weight}})).await.expect_problem(400, "invalid_json");
    }
    create(json!({"name": "vision", "description": "a\nb"})).await.expect_problem(422, "out_of_range");
    create(json!({"name": "default"})).await.expect_problem(409, "name_taken");
    create(json!({"name": "vision", "settings": {"guaranteed_gpus": 99}})).await.expect_status(201);
    create(json!({"name": "vision"})).await.expect_problem(409, "name_taken");
    let view = shares(&server).await;
    assert_eq!((&view["gpus"], &view["guaranteed_gpus"]), (&json!(0), &json!(99)), "allowed, and shown");

    let call = async |method: &str, path: &str| server.call(&Actor::Admin, method, path, "{}").await;
    call("PUT", "/api/teams/vision/members/unknown").await.expect_problem(404, "user_not_found");
    call("PUT", "/api/teams/nope/members/ada").await.expect_problem(404, "team_not_found");
    call("DELETE", "/api/teams/vision/members/ada").await.expect_problem(404, "user_not_found");
    call("DELETE", "/api/teams/default").await.expect_problem(409, "default_team");
    call("DELETE", "/api/teams/nope").await.expect_problem(404, "team_not_found");
    call("GET", "/api/teams/nope").await.expect_problem(404, "team_not_found");
    for hours in [0, 8_761] {
        let rules = json!({"half_life_hours": hours}).to_string();
        server.call(&Actor::Admin, "PUT", "/api/shares/rules", rules).await.expect_problem(422, "out_of_range");
    }
    put(&server, "/api/shares/rules", json!({"half_life_hours": 24})).await;
    assert_eq!(shares(&server).await["rules"], json!({"half_life_hours": 24}));
    put(&server, "/api/teams/default", json!({"description": "Everyone", "settings": {"weight": 2}})).await;
    let listed = server.get(&Actor::Admin, "/api/teams").await.expect_status(200);
    let names: Vec<&Value> = listed["teams"].as_array().expect("a list").iter().map(|team| &team["name"]).collect();
    assert_eq!(names, ["default", "vision"]);
    assert_eq!(listed["teams"][0]["settings"]["weight"], 2);
}

#[tokio::test]
async fn pages_show_and_change_teams() {
    let server = TestServer::start().await;
    server.add_user("ada", "researcher").await;
    let cookies = log_in(&server).await;
    assert!(page(&server, &cookies, "/shares").await.contains("default"));
    let session = Actor::Cookie(cookies.clone());
    let post = async |path: &str, form: &str| {
        let response = server.call(&session, "POST", path, form.to_owned()).await;
        response.headers["location"].to_str().expect("ascii").to_owned()
    };
    let form = "name=vision&description=Images&weight=3&guaranteed_gpus=8&max_gpus=&max_gpu_hours=&max_running_jobs=&max_waiting_jobs=";
    assert_eq!(post("/ui/teams", form).await, "/shares/vision");
    assert_eq!(post("/ui/teams/vision/members", "user=ada").await, "/shares/vision");
    assert!(page(&server, &cookies, "/shares/vision").await.contains("ada"));
    assert_eq!(post("/ui/teams/vision/members/ada", "weight=2&max_gpus=4").await, "/shares/vision");
    let team = server.get(&Actor::Admin, "/api/teams/vision").await.expect_status(200);
    assert_eq!(
        (&team["settings"]["guaranteed_gpus"], &team["members"][0]["settings"]["max_gpus"]),
        (&json!(8), &json!(4))
    );
    // A rejected form shows what was typed, and each error.
    assert_eq!(post("/ui/teams/vision", "description=x&weight=0&max_gpus=many").await, "/shares/vision");
    assert_eq!(post("/ui/teams/vision/members", "user=unknown").await, "/shares/vision");
    assert_eq!(post("/ui/shares/rules", "half_life_hours=soon").await, "/shares");
    assert_eq!(post("/ui/teams/vision/members/ada/remove", "").await, "/shares/vision");
    assert_eq!(post("/ui/teams/vision/delete", "").await, "/shares");
    assert_eq!(post("/ui/teams/default/delete", "").await, "/shares/default");
    let listed = server.get(&Actor::Admin, "/api/teams").await.expect_status(200);
    assert_eq!(listed["teams"].as_array().expect("a list").len(), 1);
}
