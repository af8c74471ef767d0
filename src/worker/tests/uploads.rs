//! Files on their way to the orchestrator: what breaks off goes on, and what is not the job's stays here.

use std::io;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::{Host, until};

const MIB: usize = 1024 * 1024;
/// Makes a file of 40 MiB in which no two pieces are alike.
const LARGE: &str =
    "\nimport os\nopen('../output/w.safetensors', 'wb').write(b''.join(b'%015d\\n' % n for n in range(40 * 65536)))\n";

fn config() -> Value {
    json!({"config.json": "{}"})
}

fn large() -> Vec<u8> {
    (0..40 * 65_536).flat_map(|number| format!("{number:015}\n").into_bytes()).collect()
}

fn offsets(shared: &Shared) -> Vec<usize> {
    shared.files.pieces.iter().map(|(_, offset, _)| offset / MIB).collect()
}

#[tokio::test]
async fn a_large_file_goes_on_where_it_broke_off() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().files.cut_pieces = 1;
    let host = Host::with_python(LARGE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    let shared = fake.shared();
    assert_eq!(offsets(&shared), [0, 0, 16, 32]);
    assert!(shared.artifacts["w.safetensors"].bytes == large(), "other bytes arrived");
    assert_eq!(shared.artifacts["w.safetensors"].kind, "final");
    assert!(!shared.statuses.iter().any(|report| report.get("error").is_some()), "{:?}", shared.statuses);
    Ok(())
}

#[tokio::test]
async fn what_a_killed_agent_has_sent_of_a_file_is_not_sent_again() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().files.most_pieces = Some(1);
    let host = Host::with_python(LARGE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("the first piece", |shared| (shared.files.pieces.len() == 1).then_some(())).await;
    agent.kill().await?;
    fake.shared().files.most_pieces = None;
    let agent = host.start(&fake)?;
    fake.status("completed").await;
    agent.end().await?;
    assert_eq!(offsets(&fake.shared()), [0, 16, 32]);
    assert!(fake.shared().artifacts["w.safetensors"].bytes == large(), "other bytes arrived");
    Ok(())
}

#[tokio::test]
async fn a_server_that_has_lost_the_beginning_gets_it_again() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().files.forget_at = Some(32 * MIB);
    let host = Host::with_python(LARGE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(offsets(&fake.shared()), [0, 16, 32, 0, 16, 32]);
    assert!(fake.shared().artifacts["w.safetensors"].bytes == large(), "other bytes arrived");
    Ok(())
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_sent_arrives_as_it_is_in_the_end() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().files.most_pieces = Some(1);
    let host = Host::with_python(LARGE)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("the first piece", |shared| (shared.files.pieces.len() == 1).then_some(())).await;
    let path = host.attempt("j_1", 1).output().join("w.safetensors");
    let mut grown = large();
    grown.extend_from_slice(b"more");
    std::fs::write(&path, &grown)?;
    fake.shared().files.most_pieces = None;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(fake.shared().artifacts["w.safetensors"].bytes == grown, "other bytes arrived");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn odd_names_and_links_are_left_out_and_the_rest_is_sent() -> io::Result<()> {
    let fake = Fake::start().await?;
    let script = "cd ../output; echo x > \"$(printf 'a\\377b')\"; echo x > 'a\\b'; ln -s /etc/passwd link; ln -s /etc etc; \
                  mkfifo pipe; mkdir -p dir; echo y > dir/plain.txt";
    let host = Host::with_script(script)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fake.shared().artifacts.keys().collect::<Vec<_>>(), ["dir/plain.txt"]);
    assert!(said.contains("its name is not plain text"), "{said}");
    Ok(())
}

#[tokio::test]
async fn an_output_directory_that_became_a_link_is_not_followed() -> io::Result<()> {
    let fake = Fake::start().await?;
    let script = "mkdir ../secret; echo s > ../secret/s.safetensors; rm -r ../output; ln -s secret ../output";
    // A sandbox of level `full` lets no job do that.
    let host = Host::with_script(script)?.flags(&["--sandbox-min", "none"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(fake.shared().artifacts.is_empty(), "{:?}", fake.shared().artifacts.keys());
    assert!(said.contains("something else in its place"), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    until("the link is still there", || host.attempt("j_1", 1).output().is_symlink().then_some(())).await;
    Ok(())
}
