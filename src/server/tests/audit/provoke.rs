//! What makes an entry of each action.

use app::domain::audit::Action;
use app::domain::time::Millis;
use axum::http::header;
use serde_json::json;

use super::DAY;
use crate::service::access::Browser;
use crate::service::unit::Caller;
use crate::tests::harness::{ADMIN, By, Events, PASSWORD, Server, totp};

/// An ephemeral worker that listens.
async fn ephemeral(server: &Server) -> (String, By, Events) {
    let (id, key) = server.worker("gpu-1").await;
    server.post(&key, "/api/workers/register", json!({"protocol": 1, "accelerator_type": "cpu"})).await.ok(200);
    let events = server.stream(&key).await;
    (id, key, events)
}

/// A job that waits, and one of a worker that has reported each of these.
async fn submitted(server: &Server) -> String {
    server.config("digits").await;
    server.submit("digits").await
}

async fn reported(server: &Server, statuses: &[&str]) -> (String, By, Events) {
    let (_, key, events) = server.online("gpu-1").await;
    let job = submitted(server).await;
    for status in statuses {
        server.report(&key, &job, json!({"status": status, "attempt": 1})).await.ok(200);
    }
    (job, key, events)
}

async fn admin(server: &Server, method: &str, path: &str) {
    server.call(&By::Admin, method, path, "").await.ok(200);
}

async fn of_worker(server: &Server, verb: &str) {
    let (id, _) = server.worker("gpu-1").await;
    admin(server, "POST", &format!("/api/admin/workers/{id}/{verb}")).await;
}

pub async fn log_in(server: &Server, token: &str) -> By {
    let answer = server.call(&By::Nobody, "POST", "/ui/login", format!("password={token}")).await;
    let cookie = answer.headers[header::SET_COOKIE].to_str().expect("ascii");
    By::Cookie(cookie.split(';').next().expect("a pair").to_owned())
}

/// Does what makes one entry of this action. Whoever adds an action is led here.
#[expect(clippy::too_many_lines, reason = "a table, with a row for each action")]
pub async fn provoke(server: &Server, action: Action) {
    match action {
        Action::WorkerCreated => drop(server.worker("gpu-1").await),
        Action::WorkerRegistered | Action::WorkerOnline => drop(server.online("gpu-1").await),
        Action::WorkerConnecting => {
            let (id, _, events) = server.online("gpu-1").await;
            drop(events);
            let path = format!("/api/admin/workers/{id}");
            while server.get(&By::Admin, &path).await.ok(200)["status"] != "connecting" {
                tokio::task::yield_now().await;
            }
        }
        Action::WorkerOffline => {
            let (_, key, _events) = server.online("gpu-1").await;
            server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
        }
        Action::WorkerDrained => of_worker(server, "drain").await,
        Action::WorkerResumed => {
            let (id, _) = server.worker("gpu-1").await;
            for verb in ["drain", "resume"] {
                admin(server, "POST", &format!("/api/admin/workers/{id}/{verb}")).await;
            }
        }
        Action::WorkerSpent => {
            let (_, key, _events) = ephemeral(server).await;
            let job = submitted(server).await;
            server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
        }
        Action::WorkerAstray => {
            let (_, key) = server.worker("gpu-1").await;
            server.post(&key, "/api/workers/register", json!({})).await.ok(200);
            let beat = json!({"status": "busy", "current_job_id": "j_unknown"});
            server.post(&key, "/api/workers/heartbeat", beat).await.ok(200);
        }
        Action::WorkerGpus => {
            let (_, key) = server.worker("gpu-1").await;
            let gpu = json!({"index": 0, "uuid": "GPU-0", "name": "A100"});
            server.post(&key, "/api/workers/register", json!({"protocol": 1, "gpus": [gpu]})).await.ok(200);
            let gpu = json!({"uuid": "GPU-0", "withheld": {"reason": "quarantined", "detail": "XID 79"}});
            let telemetry = json!([{"at": "2024-01-15T10:30:00Z", "gpus": [gpu]}]);
            server.post(&key, "/api/workers/heartbeat", json!({"telemetry": telemetry})).await.ok(200);
        }
        Action::WorkerFitness => {
            let (_, key) = server.worker("gpu-1").await;
            server.post(&key, "/api/workers/register", json!({"protocol": 1})).await.ok(200);
            server.post(&key, "/api/workers/heartbeat", json!({"unfit": "the disk is full"})).await.ok(200);
        }
        Action::WorkerTokenRotated => of_worker(server, "token").await,
        Action::WorkerEdited => {
            let (id, _) = server.worker("gpu-1").await;
            let path = format!("/api/admin/workers/{id}");
            server.call(&By::Admin, "PATCH", &path, r#"{"name": "gpu-2"}"#).await.ok(200);
        }
        Action::WorkerTokenInUse => {
            let (_, key) = server.worker("gpu-1").await;
            let register = |install| json!({"protocol": 1, "install_id": install});
            server.post(&key, "/api/workers/register", register("a")).await.ok(200);
            server.post(&key, "/api/workers/register", register("b")).await.problem(409, "token_in_use");
        }
        Action::WorkerRegistrationRefused => {
            let stranger = By::worker("wt_made-up");
            server.post(&stranger, "/api/workers/register", json!({})).await.problem(401, "worker_token_refused");
        }
        Action::WorkerRemoved => {
            let (_, key, _events) = ephemeral(server).await;
            server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
            server.pass(Millis::seconds(4_000)).await;
        }
        Action::WorkerDeleted => {
            let (id, _) = server.worker("gpu-1").await;
            admin(server, "DELETE", &format!("/api/admin/workers/{id}")).await;
        }
        Action::JobSubmitted => drop(submitted(server).await),
        Action::JobPrioritised => {
            let path = format!("/api/queue/{}/priority", submitted(server).await);
            server.post(&By::Admin, &path, json!({"priority": 30})).await.ok(200);
        }
        Action::JobOffered => drop(reported(server, &[]).await),
        Action::JobOfferExpired => {
            let (_, _, _events) = reported(server, &[]).await;
            server.pass(Millis::seconds(31)).await;
        }
        Action::JobStarting => drop(reported(server, &["starting"]).await),
        Action::JobRunning => drop(reported(server, &["starting", "running"]).await),
        Action::JobKeptBack => {
            let (_, key, _events) = server.online("gpu-1").await;
            server.config("digits").await;
            let submit = json!({"config_name": "digits", "exclusive": true});
            let job = server.post(&By::Admin, "/api/queue/submit", submit).await.ok(201)["job_id"].clone();
            let job = job.as_str().expect("text");
            server.report(&key, job, json!({"status": "running", "attempt": 1})).await.ok(200);
            server.register(&key, json!([])).await;
            server.clock.advance(Millis(1));
            let log = format!("/api/workers/job/{job}/logs?attempt=1&offset=0");
            server.call(&key, "PUT", &log, "still here").await.ok(200);
        }
        Action::JobRequeued => drop(reported(server, &["running", "requeue"]).await),
        Action::JobCancelling => {
            let (job, _, _events) = reported(server, &["running"]).await;
            admin(server, "POST", &format!("/api/queue/{job}/cancel")).await;
        }
        Action::JobCancelled => {
            let job = submitted(server).await;
            admin(server, "POST", &format!("/api/queue/{job}/cancel")).await;
        }
        Action::JobCompleted => drop(reported(server, &["completed"]).await),
        Action::JobFailed => drop(reported(server, &["running", "failed"]).await),
        Action::ConfigStored => server.config("digits").await,
        Action::ConfigDeleted => {
            server.config("digits").await;
            admin(server, "DELETE", "/api/configs/digits").await;
        }
        Action::SetupCompleted => {
            let code = server.app.core.setup_code().await.expect("a database").expect("nobody can log in yet");
            let browser = Browser::default();
            server.app.core.set_up(Caller::system(), &code, "ada", PASSWORD, browser).await.expect("the code");
        }
        // At the server's start.
        Action::TokenBootstrapped | Action::UserCreated => {}
        Action::LoggedIn => drop(log_in(server, ADMIN).await),
        Action::LoggedOut => {
            let session = log_in(server, ADMIN).await;
            server.call(&session, "POST", "/ui/logout", "").await;
        }
        Action::SessionEnded => {
            log_in(server, ADMIN).await;
            let id = server.id_of("admin").await;
            let detail = server.get(&By::Admin, &format!("/api/admin/users/{id}")).await.ok(200);
            let session = detail["sessions"][0]["id"].as_str().expect("text");
            admin(server, "DELETE", &format!("/api/account/sessions/{session}")).await;
        }
        Action::UserEdited | Action::PasswordReset => {
            server.person("ada", "viewer").await;
            let path = format!("/api/admin/users/{}", server.id_of("ada").await);
            server.call(&By::Admin, "PATCH", &path, r#"{"role": "lead"}"#).await.ok(200);
            server.post(&By::Admin, &format!("{path}/password"), json!({"password": PASSWORD})).await.ok(200);
        }
        Action::SessionProved => {
            let ada = server.person("ada", "viewer").await;
            server.post(&ada, "/api/session/proof", json!({"password": PASSWORD})).await.ok(200);
        }
        Action::PasswordChanged => {
            let ada = server.person("ada", "viewer").await;
            let change = json!({"old": PASSWORD, "new": "another-good-one"});
            server.post(&ada, "/api/account/password", change).await.ok(200);
        }
        Action::FactorAdded => drop(totp::enrolled(server, "ada").await),
        Action::FactorRemoved => {
            totp::enrolled(server, "ada").await;
            admin(server, "DELETE", &format!("/api/admin/users/{}/factors", server.id_of("ada").await)).await;
        }
        Action::RecoveryCodesRenewed => {
            let ada = totp::enrolled(server, "ada").await;
            server.post(&ada.browser, "/api/account/recovery-codes", json!({})).await.ok(201);
        }
        Action::RecoveryCodeUsed => {
            let ada = totp::enrolled(server, "ada").await;
            totp::log_in(server, "ada", &ada.recovery_codes[0]).await.expect("a recovery code");
        }
        Action::TokenCreated | Action::TokenRevoked => {
            let made = server.post(&By::Admin, "/api/account/tokens", json!({"name": "ci"})).await.ok(201);
            let id = made["id"].as_str().expect("text");
            admin(server, "DELETE", &format!("/api/account/tokens/{id}")).await;
        }
        Action::SecretSet | Action::SecretRemoved | Action::SecretsGiven => {
            let put = json!({"value": "hf_0123456789"}).to_string();
            server.call(&By::Admin, "PUT", "/api/secrets/HF_TOKEN", put).await.ok(200);
            let (_, key, _events) = server.online("gpu-1").await;
            server.config("digits").await;
            let named = json!({"config_name": "digits", "target": "worker", "secrets": ["HF_TOKEN"]});
            let job = server.post(&By::Admin, "/api/queue/submit", named).await.ok(201);
            let job = job["job_id"].as_str().expect("text");
            server.post(&key, &format!("/api/workers/job/{job}/secrets"), json!({})).await.ok(200);
            admin(server, "DELETE", "/api/secrets/HF_TOKEN").await;
        }
        Action::LoginRefused => drop(log_in(server, "st_made-up").await),
        Action::AccessDenied => {
            let ada = server.person("ada", "viewer").await;
            server.get(&ada, "/api/admin/users").await.problem(403, "permission_denied");
        }
        Action::AuditCheckpoint => server.app.core.sign_audit().await.expect("a database"),
        Action::AuditExpired => {
            server.clock.advance(Millis(2 * DAY.0));
            server.app.core.expire_audit().await.expect("a database");
        }
        Action::RetentionSwept => {
            server.config("digits").await;
            let job = server.submit("digits").await;
            server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
            server.clock.advance(Millis(2 * DAY.0));
            server.app.core.expire_jobs().await.expect("a database");
        }
    }
}
