//! Uploads of files: interrupted ones resume, and files that are not the job's stay on the host.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::{TestHost, wait_until};

const MIB: usize = 1024 * 1024;
/// Creates a file of 40 MiB without repetition.
const WRITE_LARGE_FILE: &str =
    "\nimport os\nopen('../output/w.safetensors', 'wb').write(b''.join(b'%015d\\n' % n for n in range(40 * 65536)))\n";

fn config() -> Value {
    json!({"config.json": "{}"})
}

fn large_file() -> Vec<u8> {
    (0..40 * 65_536).flat_map(|number| format!("{number:015}\n").into_bytes()).collect()
}

fn offsets(shared: &FakeState) -> Vec<usize> {
    shared.files.chunks.iter().map(|(_, offset, _)| offset / MIB).collect()
}

#[tokio::test]
async fn interrupted_upload_resumes() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().files.truncated_chunks = 1;
    let host = TestHost::with_python(WRITE_LARGE_FILE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let shared = fake.state();
    assert_eq!(offsets(&shared), [0, 0, 16, 32]);
    assert!(shared.artifacts["w.safetensors"].bytes == large_file(), "other bytes arrived");
    assert_eq!(shared.artifacts["w.safetensors"].kind, "final");
    assert!(!shared.statuses.iter().any(|report| report.get("error").is_some()), "{:?}", shared.statuses);
    Ok(())
}

#[tokio::test]
async fn restarted_agent_resumes_an_upload() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().files.max_chunks = Some(1);
    let host = TestHost::with_python(WRITE_LARGE_FILE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the first chunk", |shared| (shared.files.chunks.len() == 1).then_some(())).await;
    agent.kill().await?;
    fake.state().files.max_chunks = None;
    let agent = host.start(&fake)?;
    fake.wait_for_status("completed").await;
    agent.wait_for_exit().await?;
    assert_eq!(offsets(&fake.state()), [0, 16, 32]);
    assert!(fake.state().artifacts["w.safetensors"].bytes == large_file(), "other bytes arrived");
    Ok(())
}

#[tokio::test]
async fn lost_upload_restarts_from_the_beginning() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().files.forget_at = Some(32 * MIB);
    let host = TestHost::with_python(WRITE_LARGE_FILE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(offsets(&fake.state()), [0, 16, 32, 0, 16, 32]);
    assert!(fake.state().artifacts["w.safetensors"].bytes == large_file(), "other bytes arrived");
    Ok(())
}

#[tokio::test]
async fn growing_file_arrives_in_its_final_state() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().files.max_chunks = Some(1);
    let host = TestHost::with_python(WRITE_LARGE_FILE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the first chunk", |shared| (shared.files.chunks.len() == 1).then_some(())).await;
    let path = host.attempt("j_1", 1).output_dir().join("w.safetensors");
    let mut final_content = large_file();
    final_content.extend_from_slice(b"more");
    std::fs::write(&path, &final_content)?;
    fake.state().files.max_chunks = None;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(fake.state().artifacts["w.safetensors"].bytes == final_content, "other bytes arrived");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn invalid_names_and_links_are_not_uploaded() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "cd ../output; echo x > \"$(printf 'a\\377b')\"; echo x > 'a\\b'; ln -s /etc/passwd link; ln -s /etc etc; \
                  mkfifo pipe; mkdir -p dir; echo y > dir/plain.txt";
    let host = TestHost::with_script(script)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(fake.state().artifacts.keys().collect::<Vec<_>>(), ["dir/plain.txt"]);
    assert!(output.contains("its name is not valid text"), "{output}");
    Ok(())
}

#[tokio::test]
async fn output_directory_replaced_by_a_link_is_not_followed() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "mkdir ../secret; echo s > ../secret/s.safetensors; rm -r ../output; ln -s secret ../output";
    // At level `full`, the sandbox prevents that.
    let host = TestHost::with_script(script)?.flags(&["--sandbox-min", "none"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(fake.state().artifacts.is_empty(), "{:?}", fake.state().artifacts.keys());
    assert!(output.contains("something else, which is not followed"), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    wait_until("the link", || host.attempt("j_1", 1).output_dir().is_symlink().then_some(())).await;
    Ok(())
}
