//! What is understood, and that what is written is read again.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Query {
    Query::parse(text).unwrap_or_else(|misread| panic!("{text:?}: {misread:?}"))
}

fn part(text: &str) -> Pattern {
    Pattern::Part(text.to_owned())
}

#[test]
fn what_is_understood() {
    let yes = |test| Term { negated: false, test };
    let cases = [
        ("", vec![]),
        ("  Rack ", vec![yes(Test::Any(part("rack")))]),
        ("team=nlp", vec![yes(Test::Any(part("team=nlp")))]),
        ("status:IDLE", vec![yes(Test::Status(Standing::Idle))]),
        ("-type:ephemeral", vec![Term { negated: true, test: Test::Kind(Kind::Ephemeral) }]),
        ("gpu:A100*", vec![yes(Test::Gpu(part("a100*")))]),
        (r#"gpu="NVIDIA A100""#, vec![yes(Test::Gpu(Pattern::Whole("NVIDIA A100".to_owned())))]),
        ("tls:off", vec![yes(Test::Tls(false))]),
        (r#""a:b" -"#, vec![yes(Test::Any(part("a:b"))), yes(Test::Any(part("-")))]),
        ("label.team=nlp", vec![yes(Test::Label { key: "team".to_owned(), value: Pattern::Whole("nlp".to_owned()) })]),
        (r#"label."a:b":x"#, vec![yes(Test::Label { key: "a:b".to_owned(), value: part("x") })]),
    ];
    for (text, terms) in cases {
        assert_eq!(read(text), Query(terms), "{text:?}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    let allowed = |text: &str| text.to_owned();
    let cases = [
        ("color:red", Misread::Key("color:red".to_owned())),
        ("label.:x", Misread::Key("label.:x".to_owned())),
        (
            "a status:sleepy",
            Misread::Value {
                word: "status:sleepy".to_owned(),
                allowed: allowed("connecting, idle, busy, draining, offline, never"),
            },
        ),
        ("tls:maybe", Misread::Value { word: "tls:maybe".to_owned(), allowed: allowed("on, off") }),
        ("gpu:", Misread::Empty("gpu:".to_owned())),
        ("status:", Misread::Empty("status:".to_owned())),
        ("\"open", Misread::Quote("open".to_owned())),
    ];
    for (text, misread) in cases {
        assert_eq!(Query::parse(text), Err(misread), "{text:?}");
    }
    assert_eq!(Query::parse(&"x".repeat(LONGEST + 1)), Err(Misread::Long));
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let whole = "[ -~äß]{1,8}".prop_map(Pattern::Whole);
    prop_oneof![whole, "[ -@\\[-~äß]{1,8}".prop_map(Pattern::Part)]
}

fn term() -> impl Strategy<Value = Term> {
    let label = ("[ -~ü]{1,6}", pattern()).prop_map(|(key, value)| Test::Label { key, value });
    let test = prop_oneof![
        "[ -@\\[-~äß]{1,8}".prop_map(|text| Test::Any(Pattern::Part(text))),
        (0..6_usize).prop_map(|n| Test::Status(Standing::ALL[n])),
        any::<bool>().prop_map(Test::Tls),
        pattern().prop_map(Test::Gpu),
        pattern().prop_map(Test::Version),
        pattern().prop_map(Test::Host),
        pattern().prop_map(Test::Name),
        pattern().prop_map(Test::Id),
        label,
    ];
    (any::<bool>(), test).prop_map(|(negated, test)| Term { negated, test })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(terms in prop::collection::vec(term(), 0..5)) {
        let query = Query(terms);
        prop_assert_eq!(Query::parse(&query.to_string()), Ok(query));
    }

    #[test]
    fn nothing_panics_and_what_is_read_stays_what_it_is(text in ".{0,40}") {
        if let Ok(query) = Query::parse(&text) {
            prop_assert_eq!(Query::parse(&query.to_string()), Ok(query));
        }
    }

    #[test]
    fn a_quoted_text_is_one_word(text in ".{1,20}") {
        let query = Query::parse(&quoted(&text));
        prop_assert_eq!(query, Ok(Query(vec![Term { negated: false, test: Test::Any(Pattern::Part(text.to_lowercase())) }])));
    }

    #[test]
    fn a_literal_fits_itself_and_no_more(text in "[a-c*?\\[\\]!-]{0,8}", other in "[a-c*?\\[\\]!-]{0,8}") {
        prop_assert_eq!(crate::domain::glob::matches(&literal(&text), &other), text == other);
        prop_assert_eq!(plain(&literal(&text)), text);
    }
}
