//! From the offer to the running supervisor. A restarted agent repeats all of it; a supervisor starts only once.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::PoisonError;
use std::time::Duration;

use app::domain::path_placeholders::JOB_PLACEHOLDERS;
use app::threads::run_io;
use tokio::time::Instant;

use super::{AttemptRunner, launch};
use crate::worker::api::{OrchestratorError, retry_until_answered};
use crate::worker::bundle::placeholders::{self, PlaceholderError, Placeholders};
use crate::worker::files::{AttemptDir, AttemptExit, StopCause, VERSION};
use crate::worker::supervisor::agent_pipe::Assignment;
use crate::worker::supervisor_pool::SupervisorProcess;
use crate::worker::{bundle, clock, environment};

/// How often a damaged bundle is fetched.
const MAX_BUNDLE_TRIES: u32 = 3;
const SUPERVISOR_START_TIMEOUT: Duration = Duration::from_secs(30);

impl AttemptRunner {
    /// Whether this or an earlier agent has started a supervisor.
    pub(super) async fn has_supervisor(&self) -> bool {
        let dir = self.dir.clone();
        let is_started = move || Ok(dir.join("supervisor.json").exists() || dir.join("exit.json").exists());
        run_io(is_started).await.unwrap_or_default()
    }

    /// Prepares the attempt until a supervisor runs.
    ///
    /// # Errors
    /// The attempt's exit, if no supervisor starts.
    pub(super) async fn prepare(&self) -> Result<(), AttemptExit> {
        if self.has_supervisor().await {
            return Ok(());
        }
        if self.is_host_restarted() {
            return Err(host_fault_exit("the host was restarted before the trainer started"));
        }
        let supervisor = tokio::select! {
            biased;
            cause = self.wait_for_stop(StopCause::Requeue) => return Err(AttemptExit { stopped: Some(cause), ..exit_now() }),
            ready = self.accept_and_prepare() => ready?,
        };
        self.start_trainer(supervisor).await
    }

    /// Accepts the offer while everything is prepared for the trainer. These steps leave nothing behind if they are
    /// aborted: a supervisor without a permit exits.
    async fn accept_and_prepare(&self) -> Result<SupervisorProcess, AttemptExit> {
        let mut accepted = pin!(self.accept_offer());
        let mut prepared = pin!(self.prepare_supervisor());
        let supervisor = tokio::select! {
            result = &mut accepted => {
                result?;
                prepared.await
            }
            // Also a failure is reported only by the worker that has accepted the offer.
            result = &mut prepared => {
                accepted.await?;
                result
            }
        }?;
        // Last, because the rest may have taken longer than a lease lasts.
        self.wait_for_lease().await;
        Ok(supervisor)
    }

    /// Prepares the files, and assigns the supervisor that will start the trainer.
    async fn prepare_supervisor(&self) -> Result<SupervisorProcess, AttemptExit> {
        self.check_host_health()?;
        self.check_disk_space().await?;
        self.fetch_bundle().await?;
        self.fetch_secrets().await.map_err(|error| self.secrets_error_exit(&error))?;
        let (dir, written, mut spec) = (self.dir.clone(), self.spec.clone(), self.spec.clone());
        spec.resume = self
            .restore_checkpoint()
            .await
            .map_err(|error| self.superseded_exit("restoring an earlier checkpoint", &error))?;
        let (processes, accelerator) = (self.process_count(), self.context.hardware.accelerator.clone());
        let write_spec = move || {
            if let Some(processes) = processes {
                spec.trainer = launch_command(&dir, spec.trainer, processes, &accelerator)?;
            }
            if spec != written {
                dir.write_json_unsynced("spec.json", &spec)?;
            }
            Ok(spec.trainer)
        };
        self.prepare_sandbox(write_spec).await?;
        self.check_gpus().await?;
        let assignment = Assignment { dir: self.dir.path().to_owned(), environment: self.trainer_environment() };
        let assigned = self.context.supervisors.assign(assignment).await;
        assigned.map_err(|error| host_fault_exit(&format!("cannot start the supervisor: {error}")))
    }

    /// Accepts the offer with the first report.
    async fn accept_offer(&self) -> Result<(), AttemptExit> {
        if self.state().accepted {
            return Ok(());
        }
        let report = self.key().status_report("starting");
        let operation = format!("accepting {}", self.key());
        match retry_until_answered(&self.context.reconnect_signal, &operation, async || {
            self.api.report_status(&report).await
        })
        .await
        {
            Ok(()) => {
                // Saved with the next change: if this agent is killed before it, the next one accepts again.
                self.state().accepted = true;
                Ok(())
            }
            Err(error) => {
                // The attempt belongs to another worker, or was cancelled; it never started.
                tracing::info!("{operation}: {error}");
                self.stop(StopCause::Superseded);
                Err(AttemptExit { stopped: Some(StopCause::Superseded), ..exit_now() })
            }
        }
    }

    /// Fetches the configuration's files, unless the offer contains them, replaces placeholders in them by directories of
    /// this host, and creates the output directory.
    async fn fetch_bundle(&self) -> Result<(), AttemptExit> {
        let bundle_ref = &self.spec.offer.bundle;
        let operation = format!("fetching the configuration of {}", self.key());
        let mut tries = 0;
        loop {
            tries += 1;
            let offered = self.offered_body.lock().unwrap_or_else(PoisonError::into_inner).take();
            let body = match offered {
                Some(body) => Ok(body.into()),
                None => {
                    retry_until_answered(&self.context.reconnect_signal, &operation, async || {
                        self.api.fetch_bundle(bundle_ref).await
                    })
                    .await
                }
            };
            let body = match body {
                Ok(body) => body,
                Err(error @ OrchestratorError::Conflict { .. }) => {
                    self.handle_error("fetching its configuration", &error);
                    return Err(AttemptExit { stopped: Some(StopCause::Superseded), ..exit_now() });
                }
                Err(error) => return Err(error_exit(format!("cannot fetch the configuration's files: {error}"))),
            };
            let (sha256, dir) = (bundle_ref.sha256.clone(), self.dir.bundle_dir());
            let allow_code = self.context.config.allow_code;
            let (values, output) = (self.placeholders(), self.dir.output_dir());
            let unpack = move || {
                std::fs::create_dir_all(output)?;
                let unpacked = bundle::parse(&body, &sha256, allow_code).and_then(|files| bundle::unpack(&files, &dir));
                Ok(unpacked.map(|()| placeholders::resolve_in_files(&dir, &values)))
            };
            match run_io(unpack).await {
                Ok(Ok(Ok(()))) => return Ok(()),
                Ok(Ok(Err(error @ PlaceholderError::Unknown { .. }))) => return Err(error_exit(error.to_string())),
                Ok(Err(bundle::BundleError::Damaged { .. })) if tries < MAX_BUNDLE_TRIES => {}
                Ok(Ok(Err(PlaceholderError::Write(error))) | Err(bundle::BundleError::Write(error))) | Err(error) => {
                    return Err(host_fault_exit(&format!("cannot write the configuration's files: {error}")));
                }
                Ok(Err(error)) => return Err(error_exit(error.to_string())),
            }
        }
    }

    fn placeholders(&self) -> Placeholders {
        let directories = self.context.config.host_directories.iter();
        let mut values: Placeholders = directories.map(|(name, dir)| (name.clone(), dir.path.clone())).collect();
        let job_values = [self.dir.output_dir(), PathBuf::from(self.key().job_id.as_str())];
        values.extend(JOB_PLACEHOLDERS.into_iter().map(str::to_owned).zip(job_values));
        values
    }

    /// The exit if secrets cannot be fetched: superseded, or a secret is not available.
    fn secrets_error_exit(&self, error: &OrchestratorError) -> AttemptExit {
        match error {
            OrchestratorError::Conflict { code, .. } if code.starts_with("secret_") => error_exit(error.to_string()),
            OrchestratorError::Conflict { .. } | OrchestratorError::NotFound(_) => {
                self.superseded_exit("fetching its secrets", error)
            }
            error => error_exit(format!("cannot fetch the job's secrets: {error}")),
        }
    }

    /// The exit of a superseded attempt.
    fn superseded_exit(&self, operation: &str, error: &OrchestratorError) -> AttemptExit {
        self.handle_error(operation, error);
        AttemptExit { stopped: Some(StopCause::Superseded), ..exit_now() }
    }

    /// The trainer's number of processes: as configured, otherwise one per GPU.
    fn process_count(&self) -> Option<u32> {
        let offer = &self.spec.offer;
        offer.num_processes.or_else(|| u32::try_from(offer.gpus.len()).ok().filter(|count| *count > 0))
    }

    fn trainer_environment(&self) -> BTreeMap<String, String> {
        let offer = &self.spec.offer;
        let upload =
            self.context.api.resolve_url(&offer.upload_endpoint).map(|url| url.to_string()).unwrap_or_default();
        let visible = self.context.hardware.visibility_env(&offer.gpus);
        let job = environment::JobEnvironment {
            job_id: self.key().job_id.as_str(),
            attempt: self.key().attempt.0,
            config_path: &self.dir.bundle_dir().join(bundle::CONFIG_FILE),
            stop_file: &self.dir.stop_file(),
            upload_endpoint: &upload,
            upload_token: self.secrets.job_token.reveal(),
            secrets: &self.job_secrets().variables,
            visible_devices: &visible,
            num_processes: self.process_count(),
            is_module: self.spec.trainer.iter().any(|argument| argument == "-m"),
            trace: self.trace.as_ref(),
        };
        let own_variables = environment::own_variables();
        let variables = environment::trainer_environment(own_variables, &self.context.config.pass_env, &job);
        self.sandbox_environment(variables)
    }

    /// Permits the supervisor to start the trainer, and waits until it has recorded that it runs, or how it ended.
    async fn start_trainer(&self, mut supervisor: SupervisorProcess) -> Result<(), AttemptExit> {
        self.started_at.get_or_init(clock::now);
        supervisor.permit_start().await;
        let deadline = Instant::now() + SUPERVISOR_START_TIMEOUT;
        loop {
            // Order matters: it writes before it exits.
            let exit_status = supervisor.try_wait();
            if self.has_supervisor().await {
                *self.supervisor.lock().unwrap_or_else(PoisonError::into_inner) = Some(supervisor);
                self.context.supervisors.refill();
                return Ok(());
            }
            let reason = match exit_status {
                Ok(Some(status)) if !status.success() => format!("it exited with {status}"),
                Err(error) => error.to_string(),
                // On success it has left the attempt to another supervisor.
                Ok(_) if Instant::now() < deadline => {
                    supervisor.wait_for_record(deadline).await;
                    continue;
                }
                Ok(_) => "it does not start".to_owned(),
            };
            // Its trainer may have started.
            supervisor.kill().await;
            self.kill_remaining().await;
            let log = self.dir.join("supervisor.log");
            return Err(host_fault_exit(&format!(
                "the trainer's supervisor failed ({reason}); see {} on the worker",
                log.display()
            )));
        }
    }
}

/// The command that starts the trainer's processes.
fn launch_command(
    dir: &AttemptDir,
    trainer: Vec<String>,
    processes: u32,
    accelerator: &str,
) -> io::Result<Vec<String>> {
    let Some(parts) = launch::split_for_accelerate(&trainer, processes) else { return Ok(trainer) };
    let config = std::fs::read(dir.bundle_dir().join(bundle::CONFIG_FILE))?;
    // The code that rewrites the configuration reports its errors.
    let config = serde_json::from_slice(&config).unwrap_or_default();
    let launch = launch::LaunchOptions {
        processes,
        accelerator,
        mixed_precision: launch::mixed_precision(&config),
        port: launch::free_port()?,
    };
    Ok(launch::accelerate_command(parts, &launch))
}

fn exit_now() -> AttemptExit {
    AttemptExit { version: VERSION, ended_at: clock::now(), ..AttemptExit::default() }
}

fn error_exit(sentence: String) -> AttemptExit {
    AttemptExit { error: Some(sentence), ..exit_now() }
}

/// The exit that requeues the job for another host.
pub(super) fn host_fault_exit(sentence: &str) -> AttemptExit {
    AttemptExit { host_fault: true, ..error_exit(sentence.to_owned()) }
}
