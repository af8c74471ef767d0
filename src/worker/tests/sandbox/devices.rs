//! The device files of GPUs: a job can open those of its own GPUs, and no others.

use std::io;

use serde_json::json;

use super::{TOOLS, config, is_end, sandboxed_host};
use crate::worker::tests::fake_orchestrator::FakeOrchestrator;
use crate::worker::tests::test_host::{can_mount, wait_until};

/// Gives the agent devices of two GPUs, and the driver's information about them.
const HOST: &str = r#"
set -e
mkdir "$HOME/dev"
mount -t tmpfs dev "$HOME/dev"
for name in null zero full random urandom tty; do cp -a "/dev/$name" "$HOME/dev"; done
for name in nvidia0 nvidia1 nvidiactl; do cp -a /dev/zero "$HOME/dev/$name"; done
ln -s /proc/self/fd "$HOME/dev/fd"
mkdir -m 1777 "$HOME/dev/shm" "$HOME/dev/pts"
mount --bind /dev/shm "$HOME/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 pts "$HOME/dev/pts"
ln -s pts/ptmx "$HOME/dev/ptmx"
mount --rbind "$HOME/dev" /dev
mount -t tmpfs driver /proc/driver
for number in 0 1; do
    mkdir -p "/proc/driver/nvidia/gpus/0000:0$number:00.0"
    printf 'GPU UUID: GPU-%s\nDevice Minor: %s\n' $number $number >"/proc/driver/nvidia/gpus/0000:0$number:00.0/information"
done
exec "$@"
"#;

const OPEN_DEVICES: &str =
    "with open('../output/new', 'w') as file: print(*[name for name in ('nvidia0', 'nvidia1', 'nvidiactl') if try_open('/dev/' + name)], file=file)
os.rename('../output/new', '../output/opened')
while not os.path.exists('../control/go'): time.sleep(0.02)
";

#[tokio::test]
async fn job_can_open_only_its_own_gpu() -> io::Result<()> {
    if !can_mount() {
        return Ok(());
    }
    for level in ["none", "files", "full"] {
        let fake = FakeOrchestrator::start().await?;
        let mut host = sandboxed_host(level, &[TOOLS, OPEN_DEVICES].concat())?
            .with_wrapper(&["unshare", "-m", "sh", "-c", HOST, "sh"]);
        let gpus = host.path().join("gpus.json");
        let gpu = |number: u32| json!({"uuid": format!("GPU-{number}"), "name": "X", "vram_gb": 80.0});
        std::fs::write(&gpus, json!({"accelerator": "cuda", "gpus": [gpu(0), gpu(1)]}).to_string())?;
        host.variables.push(("SIMPLETUNER_FAKE_GPUS".to_owned(), gpus.display().to_string()));
        let agent = host.start(&fake)?;
        for (job, gpu, own_device) in [("j_1", "GPU-0", "nvidia0"), ("j_2", "GPU-1", "nvidia1")] {
            fake.offer_with_gpus(&[gpu], job, 1, &config());
            let opened = host.attempt(job, 1).output_dir().join("opened");
            let opened = wait_until("the opened devices", || std::fs::read_to_string(&opened).ok()).await;
            let expected = if level == "none" { "nvidia0 nvidia1" } else { own_device };
            assert_eq!(opened, format!("{expected} nvidiactl\n"), "{level}");
        }
        for job in ["j_1", "j_2"] {
            std::fs::write(host.attempt(job, 1).control_dir().join("go"), "")?;
        }
        fake.wait_until("their end", |shared| {
            (shared.statuses.iter().filter(|report| is_end(report)).count() == 2).then_some(())
        })
        .await;
        agent.kill().await?;
    }
    Ok(())
}
