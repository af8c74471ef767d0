use super::*;

const NOW: Timestamp = Timestamp(1_000_000);

fn topics(names: &[&str]) -> Topics {
    names.iter().map(ToString::to_string).collect()
}

fn tab(id: &str, names: &[&str]) -> SharedTab {
    SharedTab::new(id.to_owned(), topics(names), Some("e-1".to_owned()))
}

fn leading(id: &str, names: &[&str]) -> SharedTab {
    let mut tab = tab(id, names);
    tab.handle(SharingEvent::Shown, NOW);
    tab.handle(SharingEvent::BecameLeader, NOW);
    tab.handle(SharingEvent::Stream(StreamEvent::Opened), NOW);
    tab
}

fn message(version: &str, names: &[&str], resync: bool) -> TopicsChanged {
    let topics = names.iter().map(ToString::to_string).collect();
    TopicsChanged { version: version.to_owned(), topics, resync }
}

fn news(changed: &TopicsChanged) -> SharingEvent {
    SharingEvent::Stream(StreamEvent::Message(serde_json::to_string(changed).expect("plain fields")))
}

fn here(tab: &str, names: &[&str]) -> SharingEvent {
    SharingEvent::Message(TabMessage::Here { tab: tab.to_owned(), topics: topics(names) })
}

/// What a tab tells, to another.
fn pass(actions: Vec<SharingAction>, to: &mut SharedTab) -> Vec<SharingAction> {
    let told = actions.into_iter().filter_map(|action| match action {
        SharingAction::Broadcast(note) => Some(note),
        _ => None,
    });
    told.flat_map(|note| to.handle(SharingEvent::Message(note), NOW)).collect()
}

#[test]
fn a_tab_that_leads_listens_for_all_and_tells_all() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["job:j_1", "jobs"]));
    let asked = two.handle(SharingEvent::Shown, NOW);
    assert!(asked.contains(&SharingAction::RequestLeadership));
    let answer = pass(asked, &mut one);
    let after = Some("e-1".to_owned());
    assert!(answer.contains(&SharingAction::Open { topics: topics(&["job:j_1", "jobs"]), after: after.clone() }));
    assert_eq!(pass(answer, &mut two), [SharingAction::SetStatus(StreamStatus::Live)]);
    let changed = message("e-2", &["job:j_1"], false);
    let told = one.handle(news(&changed), NOW);
    assert!(told.contains(&SharingAction::Changed(changed.topics.clone())));
    assert_eq!(pass(told, &mut two), [SharingAction::Changed(changed.topics)]);
    // Nobody opens anything for topics that are followed already.
    assert!(
        !one.handle(here("three", &["jobs"]), NOW).iter().any(|action| matches!(action, SharingAction::Open { .. }))
    );
    assert_eq!(
        two.handle(SharingEvent::Closed, NOW),
        [SharingAction::Broadcast(TabMessage::Gone { tab: "two".to_owned() })]
    );
}

#[test]
fn who_missed_something_asks_for_everything_once() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.handle(news(&message("e-7", &["jobs"], false)), NOW);
    let answer = pass(two.handle(SharingEvent::Shown, NOW), &mut one);
    assert_eq!(pass(answer, &mut two), [SharingAction::SetStatus(StreamStatus::Live), SharingAction::Refetch]);
    let again = pass(two.handle(SharingEvent::Shown, NOW), &mut one);
    assert_eq!(pass(again, &mut two), []);
    assert_eq!(pass(one.handle(news(&message("e-9", &[], true)), NOW), &mut two), [SharingAction::Refetch]);
}

#[test]
fn a_tab_that_is_hidden_lets_another_lead() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["workers"]));
    two.handle(SharingEvent::Shown, NOW);
    assert_eq!(one.handle(SharingEvent::Hidden, NOW), [SharingAction::Close, SharingAction::StepDown]);
    let takes = two.handle(SharingEvent::BecameLeader, NOW);
    assert!(takes.contains(&SharingAction::Open { topics: topics(&["workers"]), after: Some("e-1".to_owned()) }));
    let answer = pass(takes, &mut one);
    assert!(
        pass(answer, &mut two)
            .contains(&SharingAction::Open { topics: topics(&["jobs", "workers"]), after: Some("e-1".to_owned()) })
    );
    // What comes to it late is not for it, and what it was given while nobody looks is given back.
    assert_eq!(one.handle(SharingEvent::Stream(StreamEvent::Failed), NOW), []);
    assert_eq!(one.handle(SharingEvent::BecameLeader, NOW), [SharingAction::StepDown]);
    assert_eq!(one.handle(SharingEvent::RetryDue, NOW), []);
}

#[test]
fn a_stream_that_fails_is_opened_again_where_it_was_and_everybody_knows() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.handle(news(&message("e-5", &["jobs"], false)), NOW);
    for (failure, wait) in [1, 2, 4, 8, 15, 15].into_iter().enumerate() {
        let at = NOW + Millis::from_secs(i64::try_from(failure).expect("few") * 5);
        let failed = one.handle(SharingEvent::Stream(StreamEvent::Failed), at);
        assert!(failed.contains(&SharingAction::RetryAfter(Duration::from_secs(wait))), "{failure}");
        assert!(failed.contains(&SharingAction::CheckSession), "{failure}");
        let again = at + Millis::from_secs(i64::try_from(wait).expect("few"));
        let link = if failure < 4 { StreamStatus::Reconnecting(again) } else { StreamStatus::Offline(NOW) };
        assert_eq!(one.status, link, "{failure}");
        pass(failed, &mut two);
        assert_eq!(two.status, link, "{failure}");
        assert_eq!(
            one.handle(SharingEvent::RetryDue, at),
            [SharingAction::Open { topics: topics(&["jobs"]), after: Some("e-5".to_owned()) }]
        );
    }
    let opened = one.handle(SharingEvent::Stream(StreamEvent::Opened), NOW);
    pass(opened, &mut two);
    assert_eq!((one.status, two.status), (StreamStatus::Live, StreamStatus::Live));
}

#[test]
fn a_stream_that_says_nothing_is_dead() {
    let mut one = leading("one", &["jobs"]);
    let later = |seconds| NOW + Millis::from_secs(seconds);
    assert_eq!(one.handle(SharingEvent::Tick, later(40)), []);
    one.handle(SharingEvent::Stream(StreamEvent::KeepAlive), later(40));
    assert_eq!(one.handle(SharingEvent::Tick, later(80)), []);
    let opened = SharingAction::Open { topics: topics(&["jobs"]), after: Some("e-1".to_owned()) };
    assert!(one.handle(SharingEvent::Tick, later(81)).contains(&opened));
    // It gets its time to answer.
    assert_eq!(one.handle(SharingEvent::Tick, later(82)), []);
    assert_eq!(tab("two", &[]).handle(SharingEvent::Tick, later(1_000)), []);
}

#[test]
fn who_is_signed_out_is_told_in_all_tabs_and_asks_no_more() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.handle(SharingEvent::Stream(StreamEvent::Failed), NOW);
    let told = one.handle(SharingEvent::SignedOut, NOW);
    pass(told, &mut two);
    assert_eq!((one.status, two.status), (StreamStatus::SignedOut, StreamStatus::SignedOut));
    // The wait that was begun before leads to one more attempt, and no further.
    assert!(matches!(one.handle(SharingEvent::RetryDue, NOW)[..], [SharingAction::Open { .. }]));
    assert_eq!(one.handle(SharingEvent::Stream(StreamEvent::Failed), NOW), []);
    assert_eq!(one.status, StreamStatus::SignedOut);
}

#[test]
fn whoever_signs_in_in_another_tab_brings_all_of_them_back() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.handle(SharingEvent::SignedOut, NOW);
    let tried = pass(two.handle(SharingEvent::Shown, NOW), &mut one);
    assert!(tried.iter().any(|action| matches!(action, SharingAction::Open { .. })));
    pass(tried, &mut two);
    assert_eq!(two.status, StreamStatus::SignedOut, "nobody knows yet");
    pass(one.handle(SharingEvent::Stream(StreamEvent::Opened), NOW), &mut two);
    assert_eq!((one.status, two.status), (StreamStatus::Live, StreamStatus::Live));
}
