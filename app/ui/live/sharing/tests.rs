use super::*;

const NOW: Timestamp = Timestamp(1_000_000);

fn topics(names: &[&str]) -> Topics {
    names.iter().map(ToString::to_string).collect()
}

fn tab(id: &str, names: &[&str]) -> Tab {
    Tab::new(id.to_owned(), topics(names), Some("e-1".to_owned()))
}

fn leading(id: &str, names: &[&str]) -> Tab {
    let mut tab = tab(id, names);
    tab.on(Event::Shown, NOW);
    tab.on(Event::Leads, NOW);
    tab.on(Event::Stream(StreamEvent::Opened), NOW);
    tab
}

fn message(version: &str, names: &[&str], resync: bool) -> TopicsChanged {
    let topics = names.iter().map(ToString::to_string).collect();
    TopicsChanged { version: version.to_owned(), topics, resync }
}

fn news(changed: &TopicsChanged) -> Event {
    Event::Stream(StreamEvent::Message(serde_json::to_string(changed).expect("plain fields")))
}

fn here(tab: &str, names: &[&str]) -> Event {
    Event::Note(Note::Here { tab: tab.to_owned(), topics: topics(names) })
}

/// What a tab tells, to another.
fn pass(actions: Vec<Action>, to: &mut Tab) -> Vec<Action> {
    let told = actions.into_iter().filter_map(|action| match action {
        Action::Tell(note) => Some(note),
        _ => None,
    });
    told.flat_map(|note| to.on(Event::Note(note), NOW)).collect()
}

#[test]
fn a_tab_that_leads_listens_for_all_and_tells_all() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["job:j_1", "jobs"]));
    let asked = two.on(Event::Shown, NOW);
    assert!(asked.contains(&Action::Ask));
    let answer = pass(asked, &mut one);
    let after = Some("e-1".to_owned());
    assert!(answer.contains(&Action::Open { topics: topics(&["job:j_1", "jobs"]), after: after.clone() }));
    assert_eq!(pass(answer, &mut two), [Action::Link(Link::Live)]);
    let changed = message("e-2", &["job:j_1"], false);
    let told = one.on(news(&changed), NOW);
    assert!(told.contains(&Action::Changed(changed.topics.clone())));
    assert_eq!(pass(told, &mut two), [Action::Changed(changed.topics)]);
    // Nobody opens anything for topics that are followed already.
    assert!(!one.on(here("three", &["jobs"]), NOW).iter().any(|action| matches!(action, Action::Open { .. })));
    assert_eq!(two.on(Event::Closed, NOW), [Action::Tell(Note::Gone { tab: "two".to_owned() })]);
}

#[test]
fn who_missed_something_asks_for_everything_once() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.on(news(&message("e-7", &["jobs"], false)), NOW);
    let answer = pass(two.on(Event::Shown, NOW), &mut one);
    assert_eq!(pass(answer, &mut two), [Action::Link(Link::Live), Action::Refetch]);
    let again = pass(two.on(Event::Shown, NOW), &mut one);
    assert_eq!(pass(again, &mut two), []);
    assert_eq!(pass(one.on(news(&message("e-9", &[], true)), NOW), &mut two), [Action::Refetch]);
}

#[test]
fn a_tab_that_is_hidden_lets_another_lead() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["workers"]));
    two.on(Event::Shown, NOW);
    assert_eq!(one.on(Event::Hidden, NOW), [Action::Close, Action::StepDown]);
    let takes = two.on(Event::Leads, NOW);
    assert!(takes.contains(&Action::Open { topics: topics(&["workers"]), after: Some("e-1".to_owned()) }));
    let answer = pass(takes, &mut one);
    assert!(
        pass(answer, &mut two)
            .contains(&Action::Open { topics: topics(&["jobs", "workers"]), after: Some("e-1".to_owned()) })
    );
    // What comes to it late is not for it, and what it was given while nobody looks is given back.
    assert_eq!(one.on(Event::Stream(StreamEvent::Failed), NOW), []);
    assert_eq!(one.on(Event::Leads, NOW), [Action::StepDown]);
    assert_eq!(one.on(Event::Again, NOW), []);
}

#[test]
fn a_stream_that_fails_is_opened_again_where_it_was_and_everybody_knows() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.on(news(&message("e-5", &["jobs"], false)), NOW);
    for (failure, wait) in [1, 2, 4, 8, 15, 15].into_iter().enumerate() {
        let at = NOW + Millis::seconds(i64::try_from(failure).expect("few") * 5);
        let failed = one.on(Event::Stream(StreamEvent::Failed), at);
        assert!(failed.contains(&Action::Wait(Duration::from_secs(wait))), "{failure}");
        assert!(failed.contains(&Action::Probe), "{failure}");
        let again = at + Millis::seconds(i64::try_from(wait).expect("few"));
        let link = if failure < 4 { Link::Reconnecting(again) } else { Link::Offline(NOW) };
        assert_eq!(one.link, link, "{failure}");
        pass(failed, &mut two);
        assert_eq!(two.link, link, "{failure}");
        assert_eq!(
            one.on(Event::Again, at),
            [Action::Open { topics: topics(&["jobs"]), after: Some("e-5".to_owned()) }]
        );
    }
    let opened = one.on(Event::Stream(StreamEvent::Opened), NOW);
    pass(opened, &mut two);
    assert_eq!((one.link, two.link), (Link::Live, Link::Live));
}

#[test]
fn a_stream_that_says_nothing_is_dead() {
    let mut one = leading("one", &["jobs"]);
    let later = |seconds| NOW + Millis::seconds(seconds);
    assert_eq!(one.on(Event::Tick, later(40)), []);
    one.on(Event::Stream(StreamEvent::Lives), later(40));
    assert_eq!(one.on(Event::Tick, later(80)), []);
    let opened = Action::Open { topics: topics(&["jobs"]), after: Some("e-1".to_owned()) };
    assert!(one.on(Event::Tick, later(81)).contains(&opened));
    // It gets its time to answer.
    assert_eq!(one.on(Event::Tick, later(82)), []);
    assert_eq!(tab("two", &[]).on(Event::Tick, later(1_000)), []);
}

#[test]
fn who_is_signed_out_is_told_in_all_tabs_and_asks_no_more() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.on(Event::Stream(StreamEvent::Failed), NOW);
    let told = one.on(Event::Refused, NOW);
    pass(told, &mut two);
    assert_eq!((one.link, two.link), (Link::SignedOut, Link::SignedOut));
    // The wait that was begun before leads to one more attempt, and no further.
    assert!(matches!(one.on(Event::Again, NOW)[..], [Action::Open { .. }]));
    assert_eq!(one.on(Event::Stream(StreamEvent::Failed), NOW), []);
    assert_eq!(one.link, Link::SignedOut);
}

#[test]
fn whoever_signs_in_in_another_tab_brings_all_of_them_back() {
    let (mut one, mut two) = (leading("one", &["jobs"]), tab("two", &["jobs"]));
    one.on(Event::Refused, NOW);
    let tried = pass(two.on(Event::Shown, NOW), &mut one);
    assert!(tried.iter().any(|action| matches!(action, Action::Open { .. })));
    pass(tried, &mut two);
    assert_eq!(two.link, Link::SignedOut, "nobody knows yet");
    pass(one.on(Event::Stream(StreamEvent::Opened), NOW), &mut two);
    assert_eq!((one.link, two.link), (Link::Live, Link::Live));
}
