//! Causes an entry of each audit action.

use app::domain::audit::AuditAction;
use app::domain::time::Millis;
use axum::http::header;
use serde_json::json;

use super::DAY;
use crate::service::access::BrowserInfo;
use crate::service::unit_of_work::Caller;
use crate::tests::harness::{ADMIN, Actor, EventStreamReader, PASSWORD, TestServer, totp};

/// Connects an ephemeral worker.
async fn connect_ephemeral_worker(server: &TestServer) -> (String, Actor, EventStreamReader) {
    let (id, key) = server.create_worker("gpu-1").await;
    server
        .post(&key, "/api/workers/register", json!({"protocol": 1, "accelerator_type": "cpu"}))
        .await
        .expect_status(200);
    let events = server.open_stream(&key).await;
    (id, key, events)
}

/// Submits a job that stays queued.
async fn submit_job(server: &TestServer) -> String {
    server.put_config("digits").await;
    server.submit("digits").await
}

/// Submits a job to a new worker, and reports these statuses.
async fn start_job_and_report(server: &TestServer, statuses: &[&str]) -> (String, Actor, EventStreamReader) {
    let (_, key, events) = server.connect_worker("gpu-1").await;
    let job = submit_job(server).await;
    for status in statuses {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    (job, key, events)
}

async fn call_as_admin(server: &TestServer, method: &str, path: &str) {
    server.call(&Actor::Admin, method, path, "").await.expect_status(200);
}

async fn act_on_worker(server: &TestServer, verb: &str) {
    let (id, _) = server.create_worker("gpu-1").await;
    call_as_admin(server, "POST", &format!("/api/admin/workers/{id}/{verb}")).await;
}

pub async fn log_in(server: &TestServer, token: &str) -> Actor {
    let response = server.call(&Actor::Unauthenticated, "POST", "/ui/login", format!("password={token}")).await;
    let cookie = response.headers[header::SET_COOKIE].to_str().expect("ascii");
    Actor::Cookie(cookie.split(';').next().expect("a cookie").to_owned())
}

/// Causes one entry of this action. A new action must be added here.
#[expect(clippy::too_many_lines, reason = "a table, with a row for each action")]
pub async fn provoke(server: &TestServer, action: AuditAction) {
    match action {
        AuditAction::WorkerCreated => drop(server.create_worker("gpu-1").await),
        AuditAction::WorkerRegistered | AuditAction::WorkerOnline => drop(server.connect_worker("gpu-1").await),
        AuditAction::WorkerConnecting => {
            let (id, _, events) = server.connect_worker("gpu-1").await;
            drop(events);
            let path = format!("/api/admin/workers/{id}");
            while server.get(&Actor::Admin, &path).await.expect_status(200)["status"] != "connecting" {
                tokio::task::yield_now().await;
            }
        }
        AuditAction::WorkerOffline => {
            let (_, key, _events) = server.connect_worker("gpu-1").await;
            server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
        }
        AuditAction::WorkerDrained => act_on_worker(server, "drain").await,
        AuditAction::WorkerResumed => {
            let (id, _) = server.create_worker("gpu-1").await;
            for verb in ["drain", "resume"] {
                call_as_admin(server, "POST", &format!("/api/admin/workers/{id}/{verb}")).await;
            }
        }
        AuditAction::WorkerRetired => {
            let (_, key, _events) = connect_ephemeral_worker(server).await;
            let job = submit_job(server).await;
            server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
        }
        AuditAction::WorkerUnassignedRun => {
            let (_, key) = server.create_worker("gpu-1").await;
            server.post(&key, "/api/workers/register", json!({})).await.expect_status(200);
            let heartbeat = json!({"status": "busy", "current_job_id": "j_unknown"});
            server.post(&key, "/api/workers/heartbeat", heartbeat).await.expect_status(200);
        }
        AuditAction::WorkerGpus => {
            let (_, key) = server.create_worker("gpu-1").await;
            let gpu = json!({"index": 0, "uuid": "GPU-0", "name": "A100"});
            server.post(&key, "/api/workers/register", json!({"protocol": 1, "gpus": [gpu]})).await.expect_status(200);
            let gpu = json!({"uuid": "GPU-0", "unavailable": {"reason": "quarantined", "detail": "XID 79"}});
            let telemetry = json!([{"at": "2024-01-15T10:30:00Z", "gpus": [gpu]}]);
            server.post(&key, "/api/workers/heartbeat", json!({"telemetry": telemetry})).await.expect_status(200);
        }
        AuditAction::WorkerHostHealth => {
            let (_, key) = server.create_worker("gpu-1").await;
            server.post(&key, "/api/workers/register", json!({"protocol": 1})).await.expect_status(200);
            server
                .post(&key, "/api/workers/heartbeat", json!({"unhealthy_reason": "the disk is full"}))
                .await
                .expect_status(200);
        }
        AuditAction::WorkerTokenRotated => act_on_worker(server, "token").await,
        AuditAction::WorkerEdited => {
            let (id, _) = server.create_worker("gpu-1").await;
            let path = format!("/api/admin/workers/{id}");
            server.call(&Actor::Admin, "PATCH", &path, r#"{"name": "gpu-2"}"#).await.expect_status(200);
        }
        AuditAction::WorkerTokenInUse => {
            let (_, key) = server.create_worker("gpu-1").await;
            let register = |install| json!({"protocol": 1, "install_id": install});
            server.post(&key, "/api/workers/register", register("a")).await.expect_status(200);
            server.post(&key, "/api/workers/register", register("b")).await.expect_problem(409, "token_in_use");
        }
        AuditAction::WorkerRegistrationRejected => {
            let unknown_worker = Actor::worker("wt_made-up");
            server
                .post(&unknown_worker, "/api/workers/register", json!({}))
                .await
                .expect_problem(401, "worker_token_invalid");
        }
        AuditAction::WorkerRemoved => {
            let (_, key, _events) = connect_ephemeral_worker(server).await;
            server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
            server.advance(Millis::from_secs(4_000)).await;
        }
        AuditAction::WorkerDeleted => {
            let (id, _) = server.create_worker("gpu-1").await;
            call_as_admin(server, "DELETE", &format!("/api/admin/workers/{id}")).await;
        }
        AuditAction::JobSubmitted => drop(submit_job(server).await),
        AuditAction::JobDescribed => {
            let path = format!("/api/queue/{}", submit_job(server).await);
            server.call(&Actor::Admin, "PATCH", &path, json!({"name": "a"}).to_string()).await.expect_status(200);
        }
        AuditAction::JobPrioritized => {
            let path = format!("/api/queue/{}/priority", submit_job(server).await);
            server.post(&Actor::Admin, &path, json!({"priority": 30})).await.expect_status(200);
        }
        AuditAction::JobOffered => drop(start_job_and_report(server, &[]).await),
        AuditAction::JobOfferExpired => {
            let (_, _, _events) = start_job_and_report(server, &[]).await;
            server.advance(Millis::from_secs(31)).await;
        }
        AuditAction::JobStarting => drop(start_job_and_report(server, &["starting"]).await),
        AuditAction::JobRunning => drop(start_job_and_report(server, &["starting", "running"]).await),
        AuditAction::JobPreempting => {
            let (_, key, _events) = server.connect_worker("gpu-1").await;
            server.put_config("digits").await;
            let idle = json!({"config_name": "digits", "target": "worker", "class": "idle"});
            let idle = server.post(&Actor::Admin, "/api/queue/submit", idle).await.expect_status(201);
            let id = idle["job_id"].as_str().expect("text");
            server.report_status(&key, id, json!({"status": "running", "attempt": 1})).await.expect_status(200);
            submit_job(server).await;
            server.advance(Millis::from_secs(2)).await;
        }
        AuditAction::JobHeld => {
            let (_, key, _events) = server.connect_worker("gpu-1").await;
            server.put_config("digits").await;
            let submit = json!({"config_name": "digits", "exclusive": true});
            let job =
                server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_status(201)["job_id"].clone();
            let job = job.as_str().expect("text");
            server.report_status(&key, job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
            server.register(&key, json!([])).await;
            server.clock.advance(Millis(1));
            let log = format!("/api/workers/job/{job}/logs?attempt=1&offset=0");
            server.call(&key, "PUT", &log, "output").await.expect_status(200);
        }
        AuditAction::JobRequeued => drop(start_job_and_report(server, &["running", "requeue"]).await),
        AuditAction::JobCancelling => {
            let (job, _, _events) = start_job_and_report(server, &["running"]).await;
            call_as_admin(server, "POST", &format!("/api/queue/{job}/cancel")).await;
        }
        AuditAction::JobCancelled => {
            let job = submit_job(server).await;
            call_as_admin(server, "POST", &format!("/api/queue/{job}/cancel")).await;
        }
        AuditAction::JobCompleted => drop(start_job_and_report(server, &["completed"]).await),
        AuditAction::JobFailed => drop(start_job_and_report(server, &["running", "failed"]).await),
        AuditAction::ConfigStored => server.put_config("digits").await,
        AuditAction::ConfigDeleted => {
            server.put_config("digits").await;
            call_as_admin(server, "DELETE", "/api/configs/digits").await;
        }
        AuditAction::SetupCompleted => {
            let code = server.app.services.access.issue_setup_code().await.expect("a database").expect("no users yet");
            let browser = BrowserInfo::default();
            server
                .app
                .services
                .access
                .create_first_admin(Caller::system(), &code, "ada", PASSWORD, browser)
                .await
                .expect("a valid code");
        }
        // Recorded when the server starts.
        AuditAction::TokenBootstrapped | AuditAction::UserCreated => {}
        AuditAction::LoggedIn => drop(log_in(server, ADMIN).await),
        AuditAction::LoggedOut => {
            let session = log_in(server, ADMIN).await;
            server.call(&session, "POST", "/ui/logout", "").await;
        }
        AuditAction::SessionEnded => {
            log_in(server, ADMIN).await;
            let id = server.user_id("admin").await;
            let detail = server.get(&Actor::Admin, &format!("/api/admin/users/{id}")).await.expect_status(200);
            let session = detail["sessions"][0]["id"].as_str().expect("text");
            call_as_admin(server, "DELETE", &format!("/api/account/sessions/{session}")).await;
        }
        AuditAction::UserEdited | AuditAction::PasswordReset => {
            server.add_user("ada", "viewer").await;
            let path = format!("/api/admin/users/{}", server.user_id("ada").await);
            server.call(&Actor::Admin, "PATCH", &path, r#"{"role": "lead"}"#).await.expect_status(200);
            server
                .post(&Actor::Admin, &format!("{path}/password"), json!({"password": PASSWORD}))
                .await
                .expect_status(200);
        }
        AuditAction::SessionReauthenticated => {
            let ada = server.add_user("ada", "viewer").await;
            server.post(&ada, "/api/session/proof", json!({"password": PASSWORD})).await.expect_status(200);
        }
        AuditAction::PasswordChanged => {
            let ada = server.add_user("ada", "viewer").await;
            let change = json!({"old": PASSWORD, "new": "another-good-one"});
            server.post(&ada, "/api/account/password", change).await.expect_status(200);
        }
        AuditAction::FactorAdded => drop(totp::user_with_totp(server, "ada").await),
        AuditAction::FactorRemoved => {
            totp::user_with_totp(server, "ada").await;
            call_as_admin(server, "DELETE", &format!("/api/admin/users/{}/factors", server.user_id("ada").await)).await;
        }
        AuditAction::RecoveryCodesRenewed => {
            let ada = totp::user_with_totp(server, "ada").await;
            server.post(&ada.browser, "/api/account/recovery-codes", json!({})).await.expect_status(201);
        }
        AuditAction::RecoveryCodeUsed => {
            let ada = totp::user_with_totp(server, "ada").await;
            totp::log_in(server, "ada", &ada.recovery_codes[0]).await.expect("a recovery code");
        }
        AuditAction::TokenCreated | AuditAction::TokenRevoked => {
            let created =
                server.post(&Actor::Admin, "/api/account/tokens", json!({"name": "ci"})).await.expect_status(201);
            let id = created["id"].as_str().expect("text");
            call_as_admin(server, "DELETE", &format!("/api/account/tokens/{id}")).await;
        }
        AuditAction::ViewSaved | AuditAction::ViewDeleted => {
            let view = json!({"query": "status=failed"}).to_string();
            server.call(&Actor::Admin, "PUT", "/api/queue/views/Failed", view).await.expect_status(200);
            call_as_admin(server, "DELETE", "/api/queue/views/Failed").await;
        }
        AuditAction::TeamCreated
        | AuditAction::TeamEdited
        | AuditAction::TeamDeleted
        | AuditAction::TeamMemberAdded
        | AuditAction::TeamMemberEdited
        | AuditAction::TeamMemberRemoved => {
            server.add_user("ada", "researcher").await;
            server.post(&Actor::Admin, "/api/teams", json!({"name": "vision"})).await.expect_status(201);
            let heavy = json!({"settings": {"weight": 2}}).to_string();
            for (path, body) in [
                ("/api/teams/vision", heavy.as_str()),
                ("/api/teams/vision/members/ada", "{}"),
                ("/api/teams/vision/members/ada", heavy.as_str()),
            ] {
                server.call(&Actor::Admin, "PUT", path, body.to_owned()).await.expect_status(200);
            }
            call_as_admin(server, "DELETE", "/api/teams/vision/members/ada").await;
            call_as_admin(server, "DELETE", "/api/teams/vision").await;
        }
        AuditAction::ShareRulesEdited => {
            let rules = json!({"half_life_hours": 24}).to_string();
            server.call(&Actor::Admin, "PUT", "/api/shares/rules", rules).await.expect_status(200);
        }
        AuditAction::SecretSet | AuditAction::SecretRemoved | AuditAction::SecretsDelivered => {
            let put = json!({"value": "hf_0123456789"}).to_string();
            server.call(&Actor::Admin, "PUT", "/api/secrets/HF_TOKEN", put).await.expect_status(200);
            let (_, key, _events) = server.connect_worker("gpu-1").await;
            server.put_config("digits").await;
            let job_body = json!({"config_name": "digits", "target": "worker", "secrets": ["HF_TOKEN"]});
            let job = server.post(&Actor::Admin, "/api/queue/submit", job_body).await.expect_status(201);
            let job = job["job_id"].as_str().expect("text");
            server.post(&key, &format!("/api/workers/job/{job}/secrets"), json!({})).await.expect_status(200);
            call_as_admin(server, "DELETE", "/api/secrets/HF_TOKEN").await;
        }
        AuditAction::LoginFailed => drop(log_in(server, "st_made-up").await),
        AuditAction::AccessDenied => {
            let ada = server.add_user("ada", "viewer").await;
            server.get(&ada, "/api/admin/users").await.expect_problem(403, "permission_denied");
        }
        AuditAction::AuditCheckpoint => server.app.services.audit.sign_audit().await.expect("a database"),
        AuditAction::AuditExpired => {
            server.clock.advance(Millis(2 * DAY.0));
            server.app.services.audit.prune_audit().await.expect("a database");
        }
        AuditAction::RetentionSwept => {
            server.put_config("digits").await;
            let job = server.submit("digits").await;
            server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
            server.clock.advance(Millis(2 * DAY.0));
            server.app.services.jobs.prune_jobs().await.expect("a database");
        }
    }
}
