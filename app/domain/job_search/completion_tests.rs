//! Tests of completions.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::completion::CompletionRequest;
use super::index::{ConfigValue, ConfigValues, IndexedJob, JobIndex};
use super::index_tests::full_job;
use super::query::JobSearchQuery;
use crate::domain::ids::JobId;
use crate::domain::time::Timestamp;

fn index() -> JobIndex {
    let job = |n: u8, user: &str, tags: &[&str]| IndexedJob {
        id: JobId::new(Timestamp(n.into()), [n; 10]),
        user: user.to_owned(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        config: if n == 3 { "sdxl".to_owned() } else { "Flux-LoRA".to_owned() },
        metrics: BTreeMap::from([("loss".to_owned(), 1.0), ("val/loss".to_owned(), 1.0)]),
        ..full_job()
    };
    let mut index = JobIndex::default();
    index.update([], [job(1, "ada", &["night run"]), job(2, "ada", &["ablation"]), job(3, "bob", &["ablation"])]);
    let rank = ConfigValue { text: "16".to_owned(), number: Some(16.0) };
    index.set_values("Flux-LoRA", 3, ConfigValues::from([("lora_rank".to_owned(), rank)]));
    index
}

fn complete(text: &str, visible: &str, shows_config: bool) -> Vec<String> {
    let visible = JobSearchQuery::parse(visible).expect("a query");
    index().complete(&CompletionRequest { text, visible: &visible, shows_config, limit: 5, now: Timestamp(0) })
}

#[test]
fn last_term_is_completed() {
    for (text, expected) in [
        ("stat", vec!["status:"]),
        ("tag:", vec!["tag:ablation", "tag:\"night run\""]),
        ("tag:NIGHT", vec!["tag:\"night run\""]),
        ("flux -tag:\"ni", vec!["flux -tag:\"night run\""]),
        ("status:fail", vec!["status:failed"]),
        ("status:fail con", vec!["status:fail config:", "status:fail config.lora_rank:"]),
        ("rank", vec!["config.lora_rank:", "worker:rank-1"]),
        ("config.lora_rank=", vec!["config.lora_rank=16"]),
        ("label.gpu_type:", vec!["label.gpu_type:a100*"]),
        ("los", vec!["loss<", "val/loss<"]),
        ("lux", vec!["config:Flux-LoRA"]),
        ("user:", vec!["user:ada", "user:bob"]),
        ("nothing-like-it", vec![]),
        ("loss<", vec![]),
    ] {
        let found = complete(text, "", true);
        let is_expected = if text == "rank" { found[..1] == expected[..1] } else { found == expected };
        assert!(is_expected, "{text:?}: {found:?}");
    }
    assert_eq!(complete("", "", true).len(), 5);
}

#[test]
fn only_visible_values_are_offered() {
    assert_eq!(complete("user:", "user:bob", true), ["user:bob"]);
    assert_eq!(complete("config:", "user:bob", true), ["config:sdxl"]);
    assert_eq!(complete("config.lora_rank:", "", false), [] as [String; 0]);
    assert_eq!(complete("lora_r", "", false), [] as [String; 0]);
}

proptest! {
    /// A completed term is valid, whatever is before it.
    #[test]
    fn completions_are_longer_and_no_input_panics(text in "(-?(tag|user|status|config.lora_rank)[:=]?)?[a-z\" -]{0,6}") {
        for completed in complete(&text, "", true) {
            let before = text.rfind(char::is_whitespace).map_or("", |at| &text[..at]);
            prop_assert!(text.contains('"') || completed.starts_with(before), "{completed}");
        }
    }
}
