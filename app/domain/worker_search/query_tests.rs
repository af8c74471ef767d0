//! Tests of the query parser, and that queries round-trip.

use proptest::prelude::*;

use super::*;
use crate::domain::search_terms::{AllowedTermValues, MAX_QUERY_CHARS, MAX_TERMS, QueryParseError, SearchTerm};

fn parse(text: &str) -> WorkerSearchQuery {
    WorkerSearchQuery::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"))
}

fn partial(text: &str) -> TextPattern {
    TextPattern::Partial(text.to_owned())
}

#[test]
fn valid_queries_are_parsed() {
    let term = |filter| SearchTerm { negated: false, filter };
    let cases = [
        ("", vec![]),
        ("  Rack ", vec![term(WorkerFilter::Any(partial("rack")))]),
        ("team=nlp", vec![term(WorkerFilter::Any(partial("team=nlp")))]),
        ("status:IDLE", vec![term(WorkerFilter::Status(WorkerSearchStatus::Idle))]),
        ("-type:ephemeral", vec![SearchTerm { negated: true, filter: WorkerFilter::Kind(WorkerKind::Ephemeral) }]),
        ("gpu:A100*", vec![term(WorkerFilter::Gpu(partial("a100*")))]),
        (r#"gpu="NVIDIA A100""#, vec![term(WorkerFilter::Gpu(TextPattern::Exact("NVIDIA A100".to_owned())))]),
        ("tls:off", vec![term(WorkerFilter::Tls(false))]),
        (r#""a:b" -"#, vec![term(WorkerFilter::Any(partial("a:b"))), term(WorkerFilter::Any(partial("-")))]),
        (
            "label.team=nlp",
            vec![term(WorkerFilter::Label { key: "team".to_owned(), value: TextPattern::Exact("nlp".to_owned()) })],
        ),
        (r#"label."a:b":x"#, vec![term(WorkerFilter::Label { key: "a:b".to_owned(), value: partial("x") })]),
    ];
    for (text, terms) in cases {
        assert_eq!(parse(text), SearchTerms(terms), "{text:?}");
    }
}

#[test]
fn invalid_terms_are_named() {
    let allowed = |text: &str| AllowedTermValues::OneOf(text.to_owned());
    let unknown = |word: &str| QueryParseError::UnknownKey { word: word.to_owned(), keys: WorkerFilter::KEYS_HELP };
    let cases = [
        ("color:red", unknown("color:red")),
        ("label.:x", unknown("label.:x")),
        (
            "a status:sleepy",
            QueryParseError::InvalidValue {
                word: "status:sleepy".to_owned(),
                allowed: allowed("connecting, idle, busy, draining, offline, never"),
            },
        ),
        ("tls:maybe", QueryParseError::InvalidValue { word: "tls:maybe".to_owned(), allowed: allowed("on, off") }),
        ("gpu:", QueryParseError::MissingValue("gpu:".to_owned())),
        ("status:", QueryParseError::MissingValue("status:".to_owned())),
        ("\"open", QueryParseError::UnclosedQuote("open".to_owned())),
    ];
    for (text, error) in cases {
        assert_eq!(WorkerSearchQuery::parse(text), Err(error), "{text:?}");
    }
    assert_eq!(WorkerSearchQuery::parse(&"x".repeat(MAX_QUERY_CHARS + 1)), Err(QueryParseError::TooLong));
    assert_eq!(WorkerSearchQuery::parse(&"x ".repeat(MAX_TERMS)).map(|query| query.0.len()), Ok(MAX_TERMS));
    assert_eq!(WorkerSearchQuery::parse(&"x ".repeat(MAX_TERMS + 1)), Err(QueryParseError::TooManyTerms));
}

fn pattern() -> impl Strategy<Value = TextPattern> {
    let exact = "[ -~äß]{1,8}".prop_map(TextPattern::Exact);
    prop_oneof![exact, "[ -@\\[-~äß]{1,8}".prop_map(TextPattern::Partial)]
}

fn term() -> impl Strategy<Value = SearchTerm<WorkerFilter>> {
    let label = ("[ -~ü]{1,6}", pattern()).prop_map(|(key, value)| WorkerFilter::Label { key, value });
    let filter = prop_oneof![
        "[ -@\\[-~äß]{1,8}".prop_map(|text| WorkerFilter::Any(TextPattern::Partial(text))),
        (0..6_usize).prop_map(|n| WorkerFilter::Status(WorkerSearchStatus::ALL[n])),
        any::<bool>().prop_map(WorkerFilter::Tls),
        pattern().prop_map(WorkerFilter::Gpu),
        pattern().prop_map(WorkerFilter::Version),
        pattern().prop_map(WorkerFilter::Host),
        pattern().prop_map(WorkerFilter::Name),
        pattern().prop_map(WorkerFilter::Id),
        label,
    ];
    (any::<bool>(), filter).prop_map(|(negated, filter)| SearchTerm { negated, filter })
}

proptest! {
    #[test]
    fn queries_round_trip(terms in prop::collection::vec(term(), 0..5)) {
        let query = SearchTerms(terms);
        prop_assert_eq!(WorkerSearchQuery::parse(&query.to_string()), Ok(query));
    }

    #[test]
    fn no_input_panics_and_parsed_queries_are_stable(text in ".{0,40}") {
        if let Ok(query) = WorkerSearchQuery::parse(&text) {
            prop_assert_eq!(WorkerSearchQuery::parse(&query.to_string()), Ok(query));
        }
    }

    #[test]
    fn quoted_text_is_one_term(text in ".{1,20}") {
        let query = WorkerSearchQuery::parse(&quote(&text));
        prop_assert_eq!(query, Ok(SearchTerms(vec![SearchTerm { negated: false, filter: WorkerFilter::Any(TextPattern::Partial(text.to_lowercase())) }])));
    }
}
