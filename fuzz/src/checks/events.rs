//! Events that a trainer posts to its supervisor, and what the agent writes: a line for each event, media only below
//! the output directory, and points that every server accepts.

use std::fs;
use std::path::Path;

use app::domain::ids::AttemptNumber;
use app::domain::time::Timestamp;
use app::protocol::agents::ProgressReport;
use serde_json::Value;

use crate::worker::files::AttemptDir;
use crate::worker::progress::ProgressReader;
use crate::worker::supervisor::events::EventRecorder;

/// The deepest nesting that can be read after writing: a line has one level more than its event.
const MAX_DEPTH: usize = 100;

/// See the module.
pub fn check(data: &[u8]) {
    if data.iter().filter(|byte| b"[{".contains(byte)).count() > MAX_DEPTH {
        return;
    }
    let temp = super::directory();
    let dir = AttemptDir::from_path(&temp.path().join("attempt"));
    fs::create_dir_all(dir.output_dir()).expect("a directory");
    let mut recorder = EventRecorder::open(&dir, 1_000_000).expect("a file");
    let recorded = recorder.record(data);
    let lines = lines(&dir);
    match serde_json::from_slice::<Value>(data) {
        Ok(sent) => {
            recorded.expect("valid JSON is recorded");
            let sent = if let Value::Array(list) = sent { list } else { vec![sent] };
            assert_eq!(lines.len(), sent.len());
            let has_no_media =
                |event: &Value| ["images", "videos", "audios"].iter().all(|list| event.get(list).is_none());
            assert!(sent.iter().zip(&lines).all(|(sent, line)| !has_no_media(sent) || *sent == line["event"]));
        }
        Err(_) if recorded.is_err() => assert!(lines.is_empty(), "invalid input writes nothing"),
        Err(_) => assert!(data.windows(3).any(|word| word == b"NaN" || word == b"Inf"), "invalid JSON is recorded"),
    }
    assert_media_paths(temp.path());
    assert_points(&lines);
}

fn lines(dir: &AttemptDir) -> Vec<Value> {
    let text = fs::read_to_string(dir.events_path()).expect("text");
    assert!(text.is_empty() || text.ends_with('\n'));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    lines.inspect(|line| assert!(line["at"].is_string() && line.get("event").is_some())).collect()
}

fn assert_media_paths(temp: &Path) {
    let names = |folder: &str| -> Vec<String> {
        let found = fs::read_dir(temp.join(folder)).into_iter().flatten().flatten();
        found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(""), ["attempt"]);
    assert!(names("attempt").iter().all(|name| ["output", "events.jsonl", "trainer.log"].contains(&name.as_str())));
    assert!(names("attempt/output").iter().all(|name| name == "validation_images"));
    let is_safe = |found: char| found.is_alphanumeric() || "-_.".contains(found);
    for name in names("attempt/output/validation_images") {
        assert!(name.starts_with("event_") && name.len() < 200, "{name}");
        assert!(name.chars().all(is_safe) && name.matches('.').count() == 1, "{name}");
    }
}

fn assert_points(lines: &[Value]) {
    let mut reader = ProgressReader::default();
    let points: Vec<_> = lines.iter().filter_map(|line| reader.read_point(&line["event"], Timestamp(7))).collect();
    for point in &points {
        let stage = point.stage.as_deref().unwrap_or_default();
        assert!(stage.chars().count() < 300 && !stage.chars().any(char::is_control));
        assert!(point.metrics.len() <= 100 && point.metrics.values().all(|value| value.is_finite()));
    }
    let report = ProgressReport { attempt: AttemptNumber(1), points };
    let text = serde_json::to_string(&report).expect("a report");
    assert_eq!(serde_json::from_str::<ProgressReport>(&text).ok(), Some(report));
}
