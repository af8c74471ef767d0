//! The GPUs of a host: what is told of them, who uses them, and what keeps them from jobs. A file makes them up.

use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::{Host, until};

/// The id of a process that no host has.
const ELSEWHERE: u32 = 2_147_483_001;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// The file that makes the GPUs up.
struct Gpus {
    path: PathBuf,
    all: Value,
}

impl Gpus {
    /// On this host, which is told of them.
    fn on(host: &mut Host, all: Value) -> io::Result<Self> {
        let path = host.path().join("gpus.json");
        host.variables.push(("SIMPLETUNER_FAKE_GPUS".to_owned(), path.display().to_string()));
        let gpus = Self { path, all };
        gpus.write()?;
        Ok(gpus)
    }

    /// One GPU that is called `GPU-1`.
    fn one(host: &mut Host) -> io::Result<Self> {
        Self::on(host, json!({"gpus": [{"uuid": "GPU-1", "name": "H100", "vram_gb": 80.0}]}))
    }

    /// Whole, as the agent may read it at any moment.
    fn write(&self) -> io::Result<()> {
        let draft = self.path.with_extension("draft");
        std::fs::write(&draft, self.all.to_string())?;
        std::fs::rename(&draft, &self.path)
    }

    /// Changes something of the first GPU.
    fn set(&mut self, field: &str, value: Value) -> io::Result<()> {
        self.all["gpus"][0][field] = value;
        self.write()
    }

    fn hang(&mut self, hang: bool) -> io::Result<()> {
        self.all["hang"] = hang.into();
        self.write()
    }
}

/// The newest thing that was told of the first GPU, if anything was in the heartbeats from this one on.
fn newest(shared: &Shared, from: usize) -> Option<Value> {
    let mut beats = shared.heartbeats.get(from..)?.iter().rev();
    let moment = beats.find_map(|beat| beat["telemetry"].as_array()?.last().cloned())?;
    Some(moment["gpus"][0].clone())
}

/// Waits until the first GPU is withheld for this reason, and answers with the words.
async fn withheld(fake: &Fake, reason: &str) -> String {
    let found = fake.until(reason, |shared| {
        let gpu = newest(shared, 0)?;
        (gpu["withheld"]["reason"] == reason).then(|| gpu["withheld"]["detail"].clone())
    });
    found.await.as_str().unwrap_or_default().to_owned()
}

/// Waits until the first GPU is not withheld, by a heartbeat from now on.
async fn free(fake: &Fake) {
    let beats = fake.shared().heartbeats.len();
    let is_free = |shared: &mut Shared| newest(shared, beats)?["withheld"].is_null().then_some(());
    fake.until("a free GPU", is_free).await;
}

/// Waits for so many further heartbeats.
async fn beats(fake: &Fake, count: usize) {
    let before = fake.shared().heartbeats.len();
    fake.until("heartbeats", |shared| (shared.heartbeats.len() >= before + count).then_some(())).await;
}

#[tokio::test]
async fn a_driver_that_comes_after_the_agent_is_found() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("exit 0")?.flags(&["--persistent"]);
    let mut gpus = Gpus::on(&mut host, json!({"error": "no driver"}))?;
    let agent = host.start(&fake)?;
    let first = fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    assert_eq!((first.get("gpus"), &first["accelerator_type"]), (None, &json!("cpu")));
    gpus.all = json!({"gpus": [{"uuid": "GPU-1", "name": "H100", "vram_gb": 80.0}]});
    gpus.write()?;
    let again = |shared: &mut Shared| shared.registers.iter().find(|said| said["gpus"][0]["uuid"] == "GPU-1").cloned();
    let second = fake.until("a registration with a GPU", again).await;
    assert_eq!((&second["accelerator_type"], &second["install_id"]), (&json!("cuda"), &first["install_id"]));
    assert_ne!(second["boot_id"], first["boot_id"]);
    // It is the same process, which whoever watches over it still knows.
    fake.offer_on(&["GPU-1"], "j_1", 1, &config());
    fake.status("completed").await;
    agent.kill().await
}

#[tokio::test]
async fn what_is_there_is_registered_and_its_readings_follow_once() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let all = json!({"driver": "550.54", "runtime": "12.4", "gpus": [
        {"uuid": "MIG-1", "name": "H100 1g", "vram_gb": 10.0, "memory_kind": "dedicated", "part_of": "GPU-1",
         "reading": {"temperature_celsius": 41.0, "memory_used_gb": 1.5, "ecc_errors": 0}},
        {"uuid": "GPU-2", "name": "GB10", "memory_kind": "unified", "reading": {"power_watts": 12.5}},
    ]});
    let _gpus = Gpus::on(&mut host, all)?;
    let agent = host.start(&fake)?;
    let register = fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    assert_eq!(register["gpu_info"]["runtime"], "12.4");
    assert_eq!(
        register["gpus"],
        json!([
            {"index": 0, "uuid": "MIG-1", "name": "H100 1g", "vram_gb": 10.0, "memory_kind": "dedicated", "part_of": "GPU-1"},
            {"index": 1, "uuid": "GPU-2", "name": "GB10", "vram_gb": null, "memory_kind": "unified"},
        ])
    );
    let moments = fake.until("three moments", |shared| {
        let told = shared.heartbeats.iter().filter_map(|beat| beat["telemetry"].as_array());
        let moments: Vec<Value> = told.flatten().cloned().collect();
        (moments.len() >= 3).then_some(moments)
    });
    let moments = moments.await;
    let mut times: Vec<&str> = moments.iter().filter_map(|moment| moment["at"].as_str()).collect();
    times.dedup();
    assert_eq!(times.len(), moments.len(), "a moment that was answered is not told again");
    assert_eq!(
        moments[0]["gpus"],
        json!([
            {"uuid": "MIG-1", "temperature_celsius": 41.0, "memory_used_gb": 1.5, "ecc_errors": 0},
            {"uuid": "GPU-2", "power_watts": 12.5},
        ])
    );
    agent.kill().await
}

#[tokio::test]
async fn somebody_elses_process_withholds_it_and_is_told_at_once() -> io::Result<()> {
    let fake = Fake::start().await?;
    // The next heartbeat by the clock would come within the hour.
    fake.shared().hold_streams = true;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    let agent = host.start(&fake)?;
    fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    gpus.set("processes", json!([{"pid": 4711, "name": "blender"}]))?;
    assert_eq!(withheld(&fake, "in_use").await, "used by process 4711 (blender)");
    gpus.set("processes", json!([]))?;
    free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn a_grave_error_is_remembered_until_a_person_releases_the_gpu() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    let agent = host.start(&fake)?;
    gpus.set("xids", json!([31]))?;
    // Two looks see the one error or none of both.
    let looked = fake.shared().heartbeats.len();
    let seen = |shared: &mut Shared| {
        let beats = shared.heartbeats.iter().skip(looked);
        (beats.filter(|beat| beat["telemetry"].is_array()).count() >= 2).then_some(())
    };
    fake.until("two looks", seen).await;
    assert!(
        newest(&fake.shared(), 0).is_some_and(|gpu| gpu["withheld"].is_null()),
        "a program's fault is the program's"
    );
    gpus.set("xids", json!([31, 79]))?;
    assert_eq!(withheld(&fake, "quarantined").await, "XID 79: it has fallen off the bus");
    agent.kill().await?;

    gpus.set("xids", json!([]))?;
    let agent = host.start(&fake)?;
    let again = fake.until("a second registration", |shared| shared.registers.get(1).cloned()).await;
    assert_eq!(again["gpus"][0]["withheld"]["detail"], "XID 79: it has fallen off the bus");
    let (code, said) = host.command(&["gpus"]).await?;
    assert!(code == Some(0) && said.contains("GPU-1  H100, 80 GB  in quarantine: XID 79"), "{said}");
    let (code, said) = host.command(&["gpus", "release", "GPU-2"]).await?;
    assert!(code == Some(1) && said.contains("GPU-2 is not in quarantine"), "{said}");
    let (code, said) = host.command(&["gpus", "release", "GPU-1"]).await?;
    assert!(code == Some(0) && said.contains("may be given to jobs again"), "{said}");
    free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn a_gpu_that_is_not_fit_gives_its_job_back_and_gets_no_other() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("echo began")?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    gpus.set("processes", json!([{"pid": 4711, "name": "blender"}]))?;
    let agent = host.start(&fake)?;
    fake.offer_on(&["GPU-1"], "j_1", 1, &config());
    let report = fake.status("requeue").await;
    assert!(
        report["error"].as_str().is_some_and(|error| error.contains("GPU-1 is used by process 4711 (blender)")),
        "{report}"
    );
    assert_eq!(fake.words(), ["starting", "requeue"]);
    assert_eq!(withheld(&fake, "in_use").await, "used by process 4711 (blender)");
    assert!(!host.attempt("j_1", 1).join("supervisor.json").exists() && fake.shared().log.is_empty());

    // Nobody is there any more, but the driver does not answer.
    gpus.set("processes", json!([]))?;
    free(&fake).await;
    gpus.hang(true)?;
    fake.shared().statuses.clear();
    fake.offer_on(&["GPU-1"], "j_2", 1, &config());
    let report = fake.status("requeue").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("did not answer within 5 s")), "{report}");
    assert_eq!(withheld(&fake, "quarantined").await, "it did not answer within 5 s before a job");
    assert!(!host.attempt("j_2", 1).join("supervisor.json").exists());
    agent.kill().await
}

#[tokio::test]
async fn the_end_is_reported_when_the_gpu_is_free() -> io::Result<()> {
    let fake = Fake::start().await?;
    let script = "echo \"$ROCR_VISIBLE_DEVICES/$HIP_VISIBLE_DEVICES/$CUDA_VISIBLE_DEVICES\"; exec sleep 1000";
    let mut host = Host::with_script(script)?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    gpus.all["accelerator"] = "rocm".into();
    gpus.write()?;
    let agent = host.start(&fake)?;
    fake.offer_on(&["GPU-1"], "j_1", 1, &config());
    fake.status("running").await;
    fake.until("its GPUs", |shared| shared.log.ends_with(b"\n").then_some(())).await;
    assert_eq!(String::from_utf8_lossy(&fake.shared().log), "GPU-1/0/0\n");
    // In a container the id is the host's, and nobody can tell that it is the trainer's.
    gpus.set("processes", json!([{"pid": ELSEWHERE}]))?;
    gpus.set("reading", json!({"power_watts": 300.0}))?;
    fake.until("a look", |shared| (newest(shared, 0)?["power_watts"] == 300.0).then_some(())).await;
    assert!(newest(&fake.shared(), 0).is_some_and(|gpu| gpu["withheld"].is_null()));
    fake.stop("j_1", 1, "cancelled");
    let dir = host.attempt("j_1", 1);
    until("the trainer's end", || dir.join("exit.json").exists().then_some(())).await;
    beats(&fake, 3).await;
    assert_eq!(fake.words(), ["starting", "running"]);
    gpus.set("processes", json!([]))?;
    fake.status("cancelled").await;
    free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn who_came_while_a_job_ran_is_not_waited_for_and_keeps_the_next_one_away() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done")?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    let agent = host.start(&fake)?;
    fake.offer_on(&["GPU-1"], "j_1", 1, &config());
    fake.status("running").await;
    // This process can be seen to be no part of the job.
    let stranger = std::process::id();
    gpus.set("processes", json!([{"pid": stranger, "name": "blender"}]))?;
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.status("completed").await;
    assert_eq!(withheld(&fake, "in_use").await, format!("used by process {stranger} (blender)"));
    agent.kill().await
}

#[tokio::test]
async fn a_gpu_whose_memory_stays_held_is_withheld_and_the_end_reported() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done")?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    let agent = host.start(&fake)?;
    fake.offer_on(&["GPU-1"], "j_1", 1, &config());
    fake.status("running").await;
    gpus.set("processes", json!([{"pid": ELSEWHERE, "name": "python3"}]))?;
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.status("completed").await;
    let detail = withheld(&fake, "quarantined").await;
    assert_eq!(detail, "its memory is still held by process 2147483001 (python3), 30 s after its job ended");
    agent.kill().await
}

#[tokio::test]
async fn a_driver_that_hangs_holds_up_no_heartbeat() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    let agent = host.start(&fake)?;
    fake.until("telemetry", |shared| newest(shared, 0)).await;
    gpus.hang(true)?;
    assert_eq!(withheld(&fake, "quarantined").await, "the driver has not answered for 15 s");
    let silent = fake.shared().heartbeats.len();
    beats(&fake, 3).await;
    let told = |beat: &Value| beat["telemetry"].is_array();
    assert!(!fake.shared().heartbeats[silent..].iter().any(told), "nothing is told of what nobody sees");
    gpus.hang(false)?;
    free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn a_driver_that_is_not_loaded_yet_makes_no_host_without_gpus() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let gpus = Gpus::one(&mut host)?;
    let agent = host.start(&fake)?;
    fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    agent.kill().await?;
    let there = std::fs::read(&gpus.path)?;
    std::fs::write(&gpus.path, "{}")?;
    let agent = host.start(&fake)?;
    let again = fake.until("a second registration", |shared| shared.registers.get(1).cloned()).await;
    assert_eq!((&again["gpus"][0]["uuid"], &again["accelerator_type"]), (&json!("GPU-1"), &json!("cuda")));
    assert!(again["gpus"][0]["withheld"].is_object(), "{again}");
    std::fs::write(&gpus.path, there)?;
    free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn an_agent_that_starts_while_the_driver_hangs_knows_its_gpus_and_offers_none() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let mut gpus = Gpus::one(&mut host)?;
    let agent = host.start(&fake)?;
    fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    agent.kill().await?;
    gpus.hang(true)?;
    let agent = host.start(&fake)?;
    let again = fake.until("a second registration", |shared| shared.registers.get(1).cloned()).await;
    assert_eq!((&again["gpus"][0]["uuid"], &again["accelerator_type"]), (&json!("GPU-1"), &json!("cuda")));
    assert_eq!(again["gpus"][0]["withheld"]["detail"], "the driver has not answered for 20 s");
    gpus.hang(false)?;
    free(&fake).await;
    agent.kill().await
}
