//! From the offer to the running supervisor. A restarted agent does it again from the start; a supervisor starts once only.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use app::domain::config_paths::OF_THE_JOB;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::{Attempt, blocking, launch};
use crate::api::{ApiError, until_answered};
use crate::bundle::places::{self, Misplaced, Places};
use crate::files::{AttemptDir, Exit, StopCause, VERSION};
use crate::{bundle, clock, environment, process};

/// How often a damaged bundle is fetched again.
const BUNDLE_TRIES: u32 = 3;
/// How long a supervisor may take to start.
const SUPERVISOR_START: Duration = Duration::from_secs(30);

impl Attempt {
    /// Whether a supervisor was started, now or by an earlier agent.
    pub(super) async fn has_supervisor(&self) -> bool {
        let dir = self.dir.clone();
        let look = move || Ok(dir.join("supervisor.json").exists() || dir.join("exit.json").exists());
        blocking(look).await.unwrap_or_default()
    }

    /// Brings it to where a supervisor runs.
    ///
    /// # Errors
    /// With the end, if it comes to no supervisor.
    pub(super) async fn prepare(&self) -> Result<(), Exit> {
        if self.has_supervisor().await {
            return Ok(());
        }
        if process::host_boot() != self.spec.host_boot {
            return Err(host_fault("the host was restarted before the trainer began"));
        }
        tokio::select! {
            biased;
            cause = self.ordered(StopCause::Requeue) => return Err(Exit { stopped: Some(cause), ..ended() }),
            ready = self.ready() => ready?,
        }
        let child = self.spawn().map_err(|error| host_fault(&format!("the supervisor cannot be started: {error}")))?;
        self.started(child).await
    }

    /// Everything that can be given up without a trace.
    async fn ready(&self) -> Result<(), Exit> {
        self.accept().await?;
        self.has_room().await?;
        self.fetch().await?;
        self.place().await?;
        self.take_secrets().await.map_err(|error| self.without_secrets(&error))?;
        let disk = |error: std::io::Error| host_fault(&format!("the job's directory cannot be prepared: {error}"));
        let (dir, mut spec) = (self.dir.clone(), self.spec.clone());
        let output = dir.output();
        blocking(move || std::fs::create_dir_all(output)).await.map_err(disk)?;
        spec.resume =
            self.bring_checkpoint().await.map_err(|error| self.lost("bringing an earlier checkpoint", &error))?;
        let (processes, accelerator) = (self.processes(), self.context.hardware.accelerator.clone());
        let prepare = move || {
            if let Some(processes) = processes {
                spec.trainer = launched(&dir, spec.trainer, processes, &accelerator)?;
            }
            dir.write("spec.json", &spec)?;
            Ok(spec.trainer)
        };
        let command = blocking(prepare).await.map_err(disk)?;
        self.make_sandbox(command).await?;
        self.gpus_are_fit().await?;
        // At last, as a large checkpoint may have taken longer than a lease lasts.
        self.first_lease().await;
        Ok(())
    }

    /// The first report is the acceptance of the offer.
    async fn accept(&self) -> Result<(), Exit> {
        if self.state().accepted {
            return Ok(());
        }
        let report = self.key().report("starting");
        let what = format!("accepting {}", self.key());
        match until_answered(&self.context.online, &what, async || self.api.status(&report).await).await {
            Ok(()) => {
                self.update(true, |state| state.accepted = true).await;
                Ok(())
            }
            Err(error) => {
                // Not ours (any more): it never was begun.
                tracing::info!("{what}: {error}");
                self.stop(StopCause::Superseded);
                Err(Exit { stopped: Some(StopCause::Superseded), ..ended() })
            }
        }
    }

    async fn fetch(&self) -> Result<(), Exit> {
        let offered = &self.spec.offer.bundle;
        let what = format!("fetching the configuration of {}", self.key());
        let mut tries = 0;
        loop {
            tries += 1;
            let body = match until_answered(&self.context.online, &what, async || self.api.bundle(offered).await).await
            {
                Ok(body) => body,
                Err(error @ ApiError::Conflict { .. }) => {
                    self.judge("fetching its configuration", &error);
                    return Err(Exit { stopped: Some(StopCause::Superseded), ..ended() });
                }
                Err(error) => return Err(failed(format!("the configuration's files cannot be fetched: {error}"))),
            };
            let (sha256, dir) = (offered.sha256.clone(), self.dir.bundle());
            let allow_code = self.context.config.allow_code;
            let unpack =
                move || Ok(bundle::open(&body, &sha256, allow_code).and_then(|files| bundle::unpack(&files, &dir)));
            match blocking(unpack).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(bundle::BadBundle::Damaged { .. })) if tries < BUNDLE_TRIES => {}
                Ok(Err(bundle::BadBundle::Disk(error))) | Err(error) => {
                    return Err(host_fault(&format!("the configuration's files cannot be written: {error}")));
                }
                Ok(Err(error)) => return Err(failed(error.to_string())),
            }
        }
    }

    /// Makes names in the configuration what they are on this host.
    async fn place(&self) -> Result<(), Exit> {
        let named = self.context.config.paths.iter();
        let mut places: Places = named.map(|(name, dir)| (name.clone(), dir.path.clone())).collect();
        let own = [self.dir.output(), PathBuf::from(self.key().job_id.as_str())];
        places.extend(OF_THE_JOB.into_iter().map(str::to_owned).zip(own));
        let bundle = self.dir.bundle();
        let disk = |error| host_fault(&format!("the configuration's files cannot be written: {error}"));
        match blocking(move || Ok(places::resolve(&bundle, &places))).await.map_err(disk)? {
            Err(Misplaced::Disk(error)) => Err(disk(error)),
            Err(error @ Misplaced::Unknown { .. }) => Err(failed(error.to_string())),
            Ok(()) => Ok(()),
        }
    }

    /// Not this worker's any more, or a job that cannot have what it asks for.
    fn without_secrets(&self, error: &ApiError) -> Exit {
        match error {
            ApiError::Conflict { code, .. } if code.starts_with("secret_") => failed(error.to_string()),
            ApiError::Conflict { .. } | ApiError::Gone(_) => self.lost("fetching its secrets", error),
            error => failed(format!("the job's secrets cannot be fetched: {error}")),
        }
    }

    /// It is somebody else's by now.
    fn lost(&self, what: &str, error: &ApiError) -> Exit {
        self.judge(what, error);
        Exit { stopped: Some(StopCause::Superseded), ..ended() }
    }

    /// How many processes the trainer has: what was asked for, else one for each GPU.
    fn processes(&self) -> Option<u32> {
        let offer = &self.spec.offer;
        offer.num_processes.or_else(|| u32::try_from(offer.gpus.len()).ok().filter(|count| *count > 0))
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let offer = &self.spec.offer;
        let upload = self.context.api.locate(&offer.upload_endpoint).map(|url| url.to_string()).unwrap_or_default();
        let visible = self.context.hardware.visible(&offer.gpus);
        let job = environment::JobEnvironment {
            job_id: self.key().job_id.as_str(),
            attempt: self.key().attempt.0,
            config_path: &self.dir.bundle().join(bundle::CONFIG_FILE),
            stop_file: &self.dir.stop_file(),
            upload_endpoint: &upload,
            upload_token: self.secrets.job_token.reveal(),
            secrets: &self.given().variables,
            visible_devices: &visible,
            num_processes: self.processes(),
            is_module: self.spec.trainer.iter().any(|word| word == "-m"),
            trace: self.trace.as_ref(),
        };
        let own =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let log = crate::files::open_private(&self.dir.join("supervisor.log"))?;
        Command::new(std::env::current_exe()?)
            .arg("supervise")
            .arg(self.dir.path())
            .env_clear()
            .envs(self.confined(environment::trainer(own, &self.context.config.pass_env, &job)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }

    /// Waits until the supervisor has written down that it runs, or how it ended.
    async fn started(&self, mut child: Child) -> Result<(), Exit> {
        let deadline = Instant::now() + SUPERVISOR_START;
        loop {
            // In this order: it writes before it ends.
            let ended = child.try_wait();
            if self.has_supervisor().await {
                // Only so that no zombie stays; its end is known from its files.
                tokio::spawn(async move { child.wait().await });
                return Ok(());
            }
            let why = match ended {
                Ok(Some(status)) if !status.success() => format!("it ended with {status}"),
                Err(error) => error.to_string(),
                // With success it has left the attempt to another supervisor.
                Ok(_) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                Ok(_) => "it does not start".to_owned(),
            };
            // Its trainer may have begun.
            self.kill_left().await;
            let log = self.dir.join("supervisor.log");
            return Err(host_fault(&format!("the trainer's supervisor failed ({why}); see {} there", log.display())));
        }
    }
}

/// The command that starts so many processes of a trainer.
fn launched(dir: &AttemptDir, trainer: Vec<String>, processes: u32, accelerator: &str) -> io::Result<Vec<String>> {
    let config = std::fs::read(dir.bundle().join(bundle::CONFIG_FILE))?;
    // What is wrong with it is said by whoever rewrites it.
    let config = serde_json::from_slice(&config).unwrap_or_default();
    let launch = launch::Launch {
        processes,
        accelerator,
        mixed_precision: launch::mixed_precision(&config),
        port: launch::free_port()?,
    };
    Ok(launch::command(&trainer, &launch).unwrap_or(trainer))
}

fn ended() -> Exit {
    Exit { version: VERSION, ended_at: clock::now(), ..Exit::default() }
}

fn failed(sentence: String) -> Exit {
    Exit { error: Some(sentence), ..ended() }
}

/// Another host may do better.
pub(super) fn host_fault(sentence: &str) -> Exit {
    Exit { host_fault: true, ..failed(sentence.to_owned()) }
}
