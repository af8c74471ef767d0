//! Sends invalid values for every field of every request: the response is a 4xx problem document, nothing changes, and
//! other requests are served.

use app::protocol::jobs::SubmitJob;
use serde_json::{Value, json};

use crate::service::jobs::fields::invalid_values;
use crate::tests::harness::{Actor, TestServer};

/// Returns values that are not text.
fn non_text_values() -> Vec<Value> {
    vec![json!(5), json!(true), json!([]), json!({})]
}

/// Returns values that are not a count.
fn non_count_values() -> Vec<Value> {
    vec![json!("five"), json!(-1), json!(1.5), json!(1e30), json!([]), json!(true)]
}

fn invalid_labels() -> Vec<Value> {
    with_values(vec![json!("a=b"), json!(["a"])], &invalid_values("worker_labels"))
}

/// Returns values of other types than this one.
fn other_types(value: &Value) -> Vec<Value> {
    match value {
        Value::String(_) => non_text_values(),
        Value::Bool(_) => vec![json!("yes"), json!(1)],
        Value::Number(number) if number.is_f64() => vec![json!("much"), json!([])],
        Value::Number(_) => non_count_values(),
        Value::Array(_) => vec![json!(5), json!("a"), json!({}), json!([5])],
        Value::Object(_) => vec![json!(5), json!("a=b"), json!(["a"])],
        Value::Null => panic!("the example of a submit has all fields"),
    }
}

/// Returns invalid values for each field of a submit: other types, and those that the service rejects.
fn submit_fields() -> Vec<(String, Vec<Value>)> {
    let example = json!(SubmitJob::example());
    let fields = example.as_object().expect("an object").iter();
    fields.map(|(field, value)| (field.clone(), with_values(other_types(value), &invalid_values(field)))).collect()
}

fn with_values(mut values: Vec<Value>, more: &[Value]) -> Vec<Value> {
    values.extend(more.iter().cloned());
    values
}

/// A route, a valid body, and invalid values for each field.
struct Route {
    actor: Actor,
    method: &'static str,
    path: String,
    body: Value,
    invalid_fields: Vec<(String, Vec<Value>)>,
}

fn to_owned_names(invalid_fields: Vec<(&str, Vec<Value>)>) -> Vec<(String, Vec<Value>)> {
    invalid_fields.into_iter().map(|(field, values)| (field.to_owned(), values)).collect()
}

fn user_routes(worker: &str, job: &str) -> Vec<Route> {
    let route = |method, path: String, body, invalid_fields| Route {
        actor: Actor::Admin,
        method,
        path,
        body,
        invalid_fields: to_owned_names(invalid_fields),
    };
    let name = || with_values(non_text_values(), &[json!(""), json!(" "), json!("a\nb"), json!("x".repeat(65))]);
    let kind = || with_values(non_text_values(), &[json!("banana")]);
    vec![
        route(
            "POST",
            "/api/admin/workers".to_owned(),
            json!({"name": "new"}),
            vec![("name", name()), ("worker_type", kind()), ("labels", invalid_labels())],
        ),
        route(
            "PATCH",
            format!("/api/admin/workers/{worker}"),
            json!({}),
            vec![
                ("name", with_values(name(), &[json!("gpu-2")])),
                ("worker_type", kind()),
                ("labels", invalid_labels()),
            ],
        ),
        route(
            "POST",
            format!("/api/admin/workers/{worker}/drain"),
            json!({}),
            vec![
                ("reason", with_values(non_text_values(), &[json!("x".repeat(501))])),
                ("deadline_seconds", with_values(non_count_values(), &[json!(2_592_001)])),
            ],
        ),
        Route {
            actor: Actor::Admin,
            method: "POST",
            path: "/api/queue/submit".to_owned(),
            body: json!({"config_name": "digits"}),
            invalid_fields: submit_fields(),
        },
        route(
            "POST",
            format!("/api/queue/{job}/priority"),
            json!({}),
            vec![("priority", with_values(non_count_values(), &[json!(51)]))],
        ),
        route(
            "PUT",
            "/api/configs/new".to_owned(),
            json!({}),
            vec![(
                "files",
                vec![
                    json!(5),
                    json!({}),
                    json!({"other.json": "{}"}),
                    json!({"config.json": "{"}),
                    json!({"config.json": "[]"}),
                    json!({"config.json": "{}", "../up": ""}),
                    json!({"config.json": 5}),
                ],
            )],
        ),
    ]
}

fn worker_routes(key: &Actor, other: &Actor, job: &str) -> Vec<Route> {
    let route = |path: String, body, invalid_fields| Route {
        actor: key.clone(),
        method: "POST",
        path,
        body,
        invalid_fields: to_owned_names(invalid_fields),
    };
    let text = || with_values(non_text_values(), &[json!("x".repeat(300)), json!("a\u{7}b")]);
    let attempts = || {
        vec![
            json!("none"),
            json!([5]),
            json!([{"job_id": "../x", "attempt": 1}]),
            json!([{"job_id": job, "attempt": -1}]),
        ]
    };
    let status = format!("/api/workers/job/{job}/status");
    vec![
        route(
            "/api/workers/register".to_owned(),
            json!({"protocol": 1, "gpu_count": 1}),
            vec![
                ("gpu_count", with_values(non_count_values(), &[json!(65)])),
                ("gpu_name", text()),
                ("accelerator_type", text()),
                ("host", text()),
                ("agent_version", text()),
                ("install_id", text()),
                ("labels", invalid_labels()),
                ("protocol", non_count_values()),
                ("max_jobs", with_values(non_count_values(), &[json!(0), json!(65)])),
                ("persistent", vec![json!("yes"), json!(1)]),
                (
                    "gpus",
                    vec![
                        json!(5),
                        json!([{"index": 0}]),
                        json!([{"index": 0, "uuid": "u\u{7}", "name": "n"}]),
                        json!([{"index": 0, "uuid": "u", "name": "n", "unavailable": {"reason": "banana"}}]),
                    ],
                ),
                ("attempts", attempts()),
                ("current_job_id", with_values(non_text_values(), &[json!("../x")])),
            ],
        ),
        route(
            "/api/workers/heartbeat".to_owned(),
            json!({}),
            vec![
                ("status", with_values(non_text_values(), &[json!("banana")])),
                ("worker_id", with_values(non_text_values(), &[json!("w_other"), json!("../x")])),
                ("attempts", attempts()),
                ("telemetry", vec![json!(5), json!([5]), json!([{"gpus": []}]), json!([{"at": "now", "gpus": [{}]}])]),
            ],
        ),
        route(
            status.clone(),
            json!({"status": "running", "attempt": 1}),
            vec![
                ("status", with_values(non_text_values(), &[json!("banana"), json!("")])),
                ("attempt", with_values(non_count_values(), &[json!(2)])),
                ("exit_code", vec![json!("one"), json!(1e30)]),
                ("error", non_text_values()),
            ],
        ),
        Route {
            actor: other.clone(),
            method: "POST",
            path: status,
            body: json!({}),
            invalid_fields: vec![("status".to_owned(), vec![json!("completed")])],
        },
        route(
            format!("/api/workers/job/{job}/progress"),
            json!({"attempt": 1, "points": []}),
            vec![
                ("attempt", with_values(non_count_values(), &[json!(2)])),
                (
                    "points",
                    vec![
                        json!(5),
                        json!([5]),
                        json!([{"step": -1, "at": "2024-01-15T10:30:00Z"}]),
                        json!([{"step": 1, "at": "now"}]),
                    ],
                ),
            ],
        ),
    ]
}

#[tokio::test]
async fn invalid_field_values_are_rejected_and_change_nothing() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (worker, key, mut events) = server.connect_worker("gpu-1").await;
    let (_, other, _others) = server.connect_worker("gpu-2").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    let state = async || {
        let mut pages = Vec::new();
        for path in ["/api/admin/workers", "/api/queue", "/api/configs"] {
            let mut page = server.get(&Actor::Admin, path).await.expect_status(200);
            page.as_object_mut().expect("an object").remove("server_time");
            pages.push(page);
        }
        pages
    };
    let before = state().await;
    for route in user_routes(&worker, &job).into_iter().chain(worker_routes(&key, &other, &job)) {
        for (field, values) in &route.invalid_fields {
            for value in values {
                let mut body = route.body.clone();
                body[field] = value.clone();
                let response = server.call(&route.actor, route.method, &route.path, body.to_string()).await;
                let value_text: String = value.to_string().chars().take(60).collect();
                let context = format!("{} {} with {field}: {value_text}", route.method, route.path);
                assert!(
                    response.status.is_client_error(),
                    "{context} returned {}: {}",
                    response.status,
                    response.text()
                );
                let document = response.json();
                assert!(document["code"].is_string() && document["detail"].is_string(), "{context}: {document}");
            }
        }
    }
    assert_eq!(state().await, before);
    server.heartbeat(&key, json!([])).await;
    server.heartbeat(&other, json!([])).await;
}
