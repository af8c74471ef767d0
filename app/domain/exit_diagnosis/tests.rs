//! Recorded exits and their causes.

mod table;

use self::table::TABLE;
use super::*;

const CODE: ExitOutcome = ExitOutcome::Code(1);

fn log(name: &str) -> String {
    let found = TABLE.iter().find(|((known, _), ..)| *known == name).expect("a recorded log");
    String::from_utf8_lossy(found.0.1).into_owned()
}

#[test]
fn recorded_exits_have_the_expected_cause() {
    for ((name, log), end, expected) in TABLE {
        let log = String::from_utf8_lossy(log);
        let found = diagnose(&log, *end);
        let Some((kind, headline, rank, last)) = expected else {
            assert_eq!(found, None, "{name}");
            continue;
        };
        let found = found.unwrap_or_else(|| panic!("{name}: no cause found"));
        assert_eq!((found.kind, found.rank), (*kind, *rank), "{name}: {found:#?}");
        assert!(found.headline.starts_with(headline), "{name}: {found:#?}");
        let last_line = found.block.lines().last().unwrap_or_default();
        assert!(last_line.starts_with(last) && last.is_empty() == found.block.is_empty(), "{name}: {found:#?}");
        assert_well_formed(name, &log, &found);
    }
}

/// Checks every cause: it is short, keeps its format, and its line exists.
fn assert_well_formed(name: &str, log: &str, found: &ExitCause) {
    assert!(found.headline.chars().count() <= 301 && !found.headline.contains('\n'), "{name}: {found:#?}");
    assert!(found.block.lines().count() <= 40 && found.block.chars().count() <= 3_600, "{name}: {found:#?}");
    assert!(
        !found.block.contains("Sending process") && !found.block.contains("ChildFailedError"),
        "{name}: {found:#?}"
    );
    if found.block.starts_with("Traceback") {
        assert!(
            found.block.lines().nth(1).is_some_and(|line| line.starts_with("  File \"") || line == "  …"),
            "{name}: {found:#?}"
        );
    }
    let line = log.split('\n').nth(found.line).unwrap_or_default();
    let line = crate::domain::log_text::plain_text(line).into_owned();
    let start: String = found.headline.chars().take(20).collect();
    assert!(line.contains(&start), "{name}: line {} is {line:?}", found.line);
}

#[test]
fn block_keeps_its_start_and_its_end() {
    let log_text = log("long_traceback");
    let found = diagnose(&log_text, CODE).expect("a cause");
    let lines: Vec<&str> = found.block.lines().collect();
    assert_eq!((lines[0], lines[1]), ("Traceback (most recent call last):", "  …"));
    assert!(lines[2].starts_with("  File"), "{}", found.block);
    let chained = log("direct_cause");
    let found = diagnose(&chained, CODE).expect("a cause");
    assert!(
        found.block.contains("PermissionError: [Errno 13]") && found.block.contains("\n\nThe above exception was"),
        "{}",
        found.block
    );
    assert_eq!(truncate::truncate_headline(&"ab ".repeat(200)).chars().count(), 300);
    assert_eq!(truncate::truncate_headline(&"ü".repeat(400)), "ü".repeat(300) + "…");
    assert!(truncate::truncate_block(&vec!["ü".repeat(900); 90]).chars().count() <= 3_600);
    assert_eq!(truncate::truncate_block(&[]), "");
}

#[test]
fn launcher_messages_are_not_trainer_lines() {
    let log_text = log("torchrun_killed");
    let last: Vec<String> = trainer_lines(&log_text).into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(last.last().map(String::as_str), Some("step 14/1000 loss 0.886 lr 1e-4"));
    let log_text = log("deepspeed_killed");
    let last: Vec<String> = trainer_lines(&log_text).into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(last.last().map(String::as_str), Some("step 4/1000 loss 0.896 lr 1e-4"));
}

/// Parts of generated logs.
const LOG_PARTS: [&str; 20] = [
    "Traceback (most recent call last):",
    "  File \"a.py\", line 1, in x",
    "ValueError: x",
    "[rank1]: ",
    "[rank",
    "3: ",
    "\n",
    "\r",
    "\r\n",
    "During handling of the above exception, another exception occurred:\n",
    "Original ",
    "usage: x\n",
    "x: error: y\n",
    "Root Cause (first observed failure):\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 1)\n",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "=====\n",
    "Fatal Python error: x\n\n",
    "terminate called\n  what():  ü\n",
    "\u{fffd}é\u{1b}[31m",
    " 3%|█ | 1/2 [00:01, 1it/s]",
];

proptest::proptest! {
    #[test]
    fn no_generated_log_panics(
        parts in proptest::collection::vec(proptest::sample::select(&LOG_PARTS[..]), 0..60), code in -300..300,
    ) {
        let log = parts.concat();
        for end in [ExitOutcome::Code(code), ExitOutcome::Signal(code)] {
            if let Some(found) = diagnose(&log, end) {
                proptest::prop_assert!(found.line < log.split('\n').count());
                proptest::prop_assert!(found.block.chars().count() <= 3_600 && found.block.lines().count() <= 40);
            }
        }
    }

    #[test]
    fn no_text_panics(log in "\\PC{0,200}", cut in 0..200_usize) {
        let cut = (0..=cut.min(log.len())).rev().find(|at| log.is_char_boundary(*at)).unwrap_or(0);
        let _ = (diagnose(&log[cut..], CODE), trainer_lines(&log));
    }
}

#[test]
fn last_of_many_tracebacks_is_the_cause() {
    let traceback = "Traceback (most recent call last):\n  File \"a\", line 1\nValueError: x\nstep\n";
    let log = traceback.repeat(256 * 1024 / traceback.len());
    let found = diagnose(&log, CODE).expect("the last one");
    assert_eq!(found.line, log.lines().count() - 2);
}
