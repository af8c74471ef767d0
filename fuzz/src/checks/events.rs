//! What a trainer posts to its supervisor, and what the agent makes of it: a line for each event, media below the output
//! directory and nowhere else, and points that every server reads.

use std::fs;
use std::path::Path;

use app::domain::ids::AttemptNumber;
use app::domain::time::Timestamp;
use app::protocol::agents::ProgressReport;
use serde_json::Value;

use crate::files::AttemptDir;
use crate::progress::ProgressReader;
use crate::supervisor::events::EventRecorder;

/// What is nested deeper is written and then not read: a line is one level more than its event.
const DEEPEST: usize = 100;

/// See the module.
pub fn check(data: &[u8]) {
    if data.iter().filter(|byte| b"[{".contains(byte)).count() > DEEPEST {
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
            recorded.expect("it is JSON");
            let sent = if let Value::Array(list) = sent { list } else { vec![sent] };
            assert_eq!(lines.len(), sent.len());
            let bare = |event: &Value| ["images", "videos", "audios"].iter().all(|list| event.get(list).is_none());
            assert!(sent.iter().zip(&lines).all(|(sent, line)| !bare(sent) || *sent == line["event"]));
        }
        Err(_) if recorded.is_err() => assert!(lines.is_empty(), "what cannot be read leaves nothing"),
        Err(_) => assert!(data.windows(3).any(|word| word == b"NaN" || word == b"Inf"), "it is no JSON"),
    }
    media_where_they_belong(temp.path());
    points(&lines);
}

fn lines(dir: &AttemptDir) -> Vec<Value> {
    let text = fs::read_to_string(dir.events_path()).expect("text");
    assert!(text.is_empty() || text.ends_with('\n'));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    lines.inspect(|line| assert!(line["at"].is_string() && line.get("event").is_some())).collect()
}

fn media_where_they_belong(temp: &Path) {
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

fn points(lines: &[Value]) {
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
