//! Several processes of one trainer.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

/// Replaces the launcher: records its arguments, and runs the module.
const LAUNCHER: &str = r#"
import json, os, runpy, sys
args = sys.argv[1:]
module = args.index("-m")
print(json.dumps({"args": args[:module], "cwd": os.getcwd()}))
sys.argv = args[module + 1:]
runpy.run_module(args[module + 1], run_name="__main__")
"#;
const TRAINER: &str = r#"
import json, os, sys
print(json.dumps({"args": sys.argv[1:], "processes": os.environ.get("TRAINING_NUM_PROCESSES")}))
"#;

fn write_files(site: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    for (name, content) in files {
        let path = site.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(site))?;
        std::fs::write(path, content)?;
    }
    Ok(())
}

/// The printed lines.
async fn printed_lines(config: &str, extra: Value) -> io::Result<Vec<Value>> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_trainer("python3 -m simpletuner.train --flag")?.flags(&["--accelerator", "cuda"]);
    let site = host.path().join("site");
    write_files(
        &site,
        &[
            ("accelerate/__init__.py", ""),
            ("accelerate/commands/__init__.py", ""),
            ("accelerate/commands/launch.py", LAUNCHER),
            ("simpletuner/__init__.py", ""),
            ("simpletuner/train.py", TRAINER),
        ],
    )?;
    host.variables.push(("PYTHONPATH".to_owned(), site.display().to_string()));
    let agent = host.start(&fake)?;
    fake.offer_with("j_1", 1, &json!({"config.json": config}), extra);
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"], "{log}");
    Ok(log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[tokio::test]
async fn several_processes_are_launched_by_accelerate() -> io::Result<()> {
    let lines = printed_lines(r#"{"--mixed_precision": "bf16"}"#, json!({"num_processes": 2})).await?;
    let args: Vec<_> = lines[0]["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (port, options) = args.split_last().ok_or_else(|| io::Error::other("no arguments"))?;
    let expected = "--num_processes 2 --num_machines 1 --mixed_precision bf16 --multi_gpu --main_process_port";
    assert_eq!(options.join(" "), expected);
    assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{port}");
    assert!(lines[0]["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("/j_1/1/work")));
    assert_eq!(lines[1], json!({"args": ["--flag"], "processes": "2"}));
    Ok(())
}

#[tokio::test]
async fn single_process_starts_directly() -> io::Result<()> {
    let lines = printed_lines("{}", json!({"num_processes": 1})).await?;
    assert_eq!(lines, [json!({"args": ["--flag"], "processes": "1"})]);
    Ok(())
}
