use super::*;

const NOW: Timestamp = Timestamp(1_000_000);

fn topics(names: &[&str]) -> Topics {
    names.iter().map(ToString::to_string).collect()
}

fn page(names: &[&str]) -> StreamState {
    StreamState::new(topics(names), Some("e-1".to_owned()))
}

fn live(names: &[&str]) -> StreamState {
    let mut page = page(names);
    page.handle(StreamInput::Shown, NOW);
    page.handle(StreamInput::Stream(StreamEvent::Opened), NOW);
    page
}

fn open(names: &[&str], after: &str) -> StreamAction {
    StreamAction::Open { topics: topics(names), after: Some(after.to_owned()) }
}

fn message(version: &str, names: &[&str], resync: bool) -> StreamInput {
    let topics = names.iter().map(ToString::to_string).collect();
    let changed = TopicsChanged { version: version.to_owned(), topics, resync };
    StreamInput::Stream(StreamEvent::Message(serde_json::to_string(&changed).expect("plain fields")))
}

#[test]
fn visible_page_opens_its_stream_and_fetches_what_changed() {
    let mut page = page(&["jobs"]);
    assert_eq!(page.handle(StreamInput::SetTopics(topics(&["jobs", "workers"])), NOW), [], "it is not visible yet");
    assert_eq!(page.handle(StreamInput::Shown, NOW), [open(&["jobs", "workers"], "e-1")]);
    let opened = page.handle(StreamInput::Stream(StreamEvent::Opened), NOW);
    assert_eq!(opened, [StreamAction::SetStatus(StreamStatus::Live)]);
    assert_eq!(page.handle(message("e-2", &["jobs"], false), NOW), [StreamAction::Changed(vec!["jobs".to_owned()])]);
    assert_eq!(page.handle(message("e-9", &[], true), NOW), [StreamAction::Refetch]);
    assert_eq!(page.handle(StreamInput::Shown, NOW), [], "it is open");
    let more = topics(&["job:j_1", "jobs"]);
    assert_eq!(page.handle(StreamInput::SetTopics(more), NOW), [open(&["job:j_1", "jobs"], "e-9")]);
    assert_eq!(page.handle(StreamInput::SetTopics(topics(&["jobs"])), NOW), [], "fewer topics need no new stream");
}

#[test]
fn page_without_a_version_fetches_everything_with_the_first_message() {
    let mut page = StreamState::new(topics(&["jobs"]), None);
    page.handle(StreamInput::Shown, NOW);
    assert_eq!(page.handle(message("e-2", &["jobs"], false), NOW), [StreamAction::Refetch]);
    assert_eq!(page.handle(message("e-3", &[], false), NOW), [StreamAction::Changed(vec![])]);
}

#[test]
fn hidden_page_has_no_stream_and_resumes_when_visible() {
    let mut page = live(&["jobs"]);
    page.handle(message("e-5", &["jobs"], false), NOW);
    assert_eq!(page.handle(StreamInput::Hidden, NOW), [StreamAction::Close]);
    assert_eq!(page.handle(StreamInput::Hidden, NOW), []);
    assert_eq!(page.handle(StreamInput::Stream(StreamEvent::Failed), NOW), [], "an event of the closed stream");
    assert_eq!(page.handle(StreamInput::SetTopics(topics(&["workers"])), NOW), []);
    assert_eq!(page.handle(StreamInput::RetryDue, NOW), []);
    assert_eq!(page.handle(StreamInput::Shown, NOW), [open(&["workers"], "e-5")]);
}

#[test]
fn failed_stream_is_reopened_with_backoff() {
    let mut page = live(&["jobs"]);
    page.handle(message("e-5", &["jobs"], false), NOW);
    for (failure, wait) in [1, 2, 4, 8, 15, 15].into_iter().enumerate() {
        let at = NOW + Millis::from_secs(i64::try_from(failure).expect("few") * 5);
        let failed = page.handle(StreamInput::Stream(StreamEvent::Failed), at);
        assert!(failed.contains(&StreamAction::RetryAfter(Duration::from_secs(wait))), "{failure}");
        assert!(failed.contains(&StreamAction::CheckSession), "{failure}");
        let retry_at = at + Millis::from_secs(i64::try_from(wait).expect("few"));
        let status = if failure < 4 { StreamStatus::Reconnecting(retry_at) } else { StreamStatus::Offline(NOW) };
        assert_eq!(page.status, status, "{failure}");
        assert_eq!(page.handle(StreamInput::RetryDue, at), [open(&["jobs"], "e-5")]);
    }
    page.handle(StreamInput::Stream(StreamEvent::Opened), NOW);
    assert_eq!(page.status, StreamStatus::Live);
}

#[test]
fn silent_stream_is_replaced() {
    let mut page = live(&["jobs"]);
    let later = |seconds| NOW + Millis::from_secs(seconds);
    assert_eq!(page.handle(StreamInput::Tick, later(40)), []);
    page.handle(StreamInput::Stream(StreamEvent::KeepAlive), later(40));
    assert_eq!(page.handle(StreamInput::Tick, later(80)), []);
    assert!(page.handle(StreamInput::Tick, later(81)).contains(&open(&["jobs"], "e-1")));
    assert_eq!(page.handle(StreamInput::Tick, later(82)), [], "the new stream has time to respond");
    page.handle(StreamInput::Hidden, NOW);
    assert_eq!(page.handle(StreamInput::Tick, later(1_000)), []);
}

#[test]
fn signed_out_page_waits_for_its_user() {
    let mut page = live(&["jobs"]);
    let ended = page.handle(StreamInput::SignedOut, NOW);
    assert_eq!(ended, [StreamAction::SetStatus(StreamStatus::SignedOut), StreamAction::Close]);
    assert_eq!(page.handle(StreamInput::RetryDue, NOW), [], "a delay that began before");
    // The user may have signed in in another tab.
    assert_eq!(page.handle(StreamInput::Shown, NOW), [open(&["jobs"], "e-1")]);
    assert_eq!(page.status, StreamStatus::SignedOut, "that is not known yet");
    page.handle(StreamInput::Stream(StreamEvent::Opened), NOW);
    assert_eq!(page.status, StreamStatus::Live);
}

#[test]
fn signed_out_page_stays_signed_out_when_its_stream_fails_again() {
    let mut page = live(&["jobs"]);
    page.handle(StreamInput::SignedOut, NOW);
    page.handle(StreamInput::Shown, NOW);
    let failed = page.handle(StreamInput::Stream(StreamEvent::Failed), NOW);
    assert_eq!((failed, page.status), (vec![], StreamStatus::SignedOut));
}
