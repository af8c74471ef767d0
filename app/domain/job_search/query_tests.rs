//! Tests of the query parser, and that queries round-trip.

use proptest::prelude::*;

use super::query::*;
use crate::domain::job_status::{JobPhase, JobStatus};
use crate::domain::search_terms::{
    AllowedTermValues, QueryParseError, SearchFilter, SearchTerm, SearchTerms, TextPattern,
};
use crate::domain::time::{Millis, Timestamp};

fn partial(text: &str) -> TextPattern {
    TextPattern::Partial(text.to_owned())
}

#[test]
fn valid_queries_are_parsed() {
    let day = |comparison, text| TimeCondition::parse(comparison, text).expect("a day");
    let cases = [
        ("Flux", JobSearchFilter::Any(partial("flux"))),
        ("team=nlp", JobSearchFilter::Any(partial("team=nlp"))),
        ("#42", JobSearchFilter::Number(JobNumberField::Number, Comparison::Equal, 42.0)),
        ("number:42", JobSearchFilter::Number(JobNumberField::Number, Comparison::Equal, 42.0)),
        ("#", JobSearchFilter::Any(partial("#"))),
        ("config:flux*", JobSearchFilter::Text(JobTextField::Config, partial("flux*"))),
        ("user=Ada", JobSearchFilter::Text(JobTextField::User, TextPattern::Exact("Ada".to_owned()))),
        ("status:FAILED", JobSearchFilter::Status(JobStatus::Failed)),
        ("status:running", JobSearchFilter::Status(JobStatus::Running)),
        ("status:waiting", JobSearchFilter::Phase(JobPhase::Waiting)),
        ("loss<0.3", JobSearchFilter::Value("loss".to_owned(), Comparison::Less, 0.3)),
        ("lr>=1e-5", JobSearchFilter::Value("lr".to_owned(), Comparison::AtLeast, 1e-5)),
        ("metric.val/loss<=1", JobSearchFilter::Metric("val/loss".to_owned(), Comparison::AtMost, 1.0)),
        ("metric.loss:1", JobSearchFilter::Metric("loss".to_owned(), Comparison::Equal, 1.0)),
        ("config.rank>8", JobSearchFilter::ConfigNumber("rank".to_owned(), Comparison::Greater, 8.0)),
        ("config.model:XL", JobSearchFilter::ConfigText("model".to_owned(), partial("xl"))),
        ("config.seed=", JobSearchFilter::ConfigText("seed".to_owned(), TextPattern::Exact(String::new()))),
        ("gpus>=2", JobSearchFilter::Number(JobNumberField::Gpus, Comparison::AtLeast, 2.0)),
        ("duration>2h", JobSearchFilter::Duration(Comparison::Greater, Millis::from_secs(7_200))),
        (
            "submitted>-7d",
            JobSearchFilter::Time(
                JobTimeField::Submitted,
                TimeCondition::Ago(Comparison::Greater, Millis::from_secs(7 * 86_400)),
            ),
        ),
        ("ended:2026-11-01", JobSearchFilter::Time(JobTimeField::Ended, day(Comparison::Equal, "2026-11-01"))),
        (
            "label.gpu_type=a100*",
            JobSearchFilter::Label { key: "gpu_type".to_owned(), value: TextPattern::Exact("a100*".to_owned()) },
        ),
    ];
    for (text, filter) in cases {
        let expected = SearchTerms(vec![SearchTerm { negated: false, filter }]);
        assert_eq!(JobSearchQuery::parse(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn invalid_terms_are_named() {
    let unknown = |word: &str| QueryParseError::UnknownKey { word: word.to_owned(), keys: JobSearchFilter::KEYS_HELP };
    let invalid = |word: &str, allowed| QueryParseError::InvalidValue { word: word.to_owned(), allowed };
    let like = AllowedTermValues::Like;
    let statuses =
        "queued, offered, starting, running, cancelling, completed, failed, cancelled, active, waiting, ended";
    let cases = [
        ("color:red", unknown("color:red")),
        ("config.:x", unknown("config.:x")),
        ("a status:sleepy", invalid("status:sleepy", AllowedTermValues::OneOf(statuses.to_owned()))),
        ("loss<low", invalid("loss<low", like("10, 0.5, 1e-5"))),
        ("gpus:two", invalid("gpus:two", like("10, 0.5, 1e-5"))),
        ("duration>2", invalid("duration>2", like("30m, 2h, 7d"))),
        ("ended<yesterday", invalid("ended<yesterday", like("2026-11-01, 2026-11-01T10:30:00Z, -7d, -12h, -30m"))),
        ("tag:", QueryParseError::MissingValue("tag:".to_owned())),
        ("loss<", QueryParseError::MissingValue("loss<".to_owned())),
    ];
    for (text, error) in cases {
        assert_eq!(JobSearchQuery::parse(text), Err(error), "{text:?}");
    }
    // A text is not compared, so this is a word.
    assert_eq!(
        JobSearchQuery::parse("status<failed"),
        Ok(SearchTerms(vec![SearchTerm { negated: false, filter: JobSearchFilter::Any(partial("status<failed")) }]))
    );
}

fn pattern() -> impl Strategy<Value = TextPattern> {
    let exact = "[ -~äß]{1,8}".prop_map(TextPattern::Exact);
    prop_oneof![exact, "[ -@\\[-~äß]{1,8}".prop_map(TextPattern::Partial)]
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::{AtLeast, AtMost, Equal, Greater, Less};
    prop::sample::select(vec![Equal, Less, AtMost, Greater, AtLeast])
}

fn ordered() -> impl Strategy<Value = Comparison> {
    comparison().prop_filter("not equal", |comparison| *comparison != Comparison::Equal)
}

fn number() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |number| number.is_finite())
}

fn condition() -> impl Strategy<Value = TimeCondition> {
    let time = 0..4_000_000_000_000_i64;
    prop_oneof![
        (comparison(), 0..40_000_i64).prop_map(|(comparison, day)| {
            let [start, end] = [day, day + 1].map(|day| Timestamp(day * 86_400_000));
            TimeCondition::Day { comparison, start, end }
        }),
        (comparison(), time).prop_map(|(by, at)| TimeCondition::Instant(by, Timestamp(at))),
        (comparison(), 0..1_000_000_i64).prop_map(|(by, ago)| TimeCondition::Ago(by, Millis::from_secs(ago))),
    ]
}

fn filter() -> impl Strategy<Value = JobSearchFilter> {
    let metric = ("[ -~]{1,6}", comparison(), number());
    let config = ("[ -~]{1,6}", ordered(), number());
    prop_oneof![
        "[ -\"$-@\\[-~äß]{1,8}".prop_map(|text| JobSearchFilter::Any(TextPattern::Partial(text))),
        (prop::sample::select(JobTextField::ALL.to_vec()), pattern())
            .prop_map(|(field, pattern)| JobSearchFilter::Text(field, pattern)),
        prop::sample::select(JobStatus::ALL.to_vec()).prop_map(JobSearchFilter::Status),
        ("[ -~ü]{1,6}", pattern()).prop_map(|(key, value)| JobSearchFilter::Label { key, value }),
        (prop::sample::select(JobNumberField::ALL.to_vec()), comparison(), number())
            .prop_map(|(field, by, number)| JobSearchFilter::Number(field, by, number)),
        (prop::sample::select(JobTimeField::ALL.to_vec()), condition())
            .prop_map(|(field, condition)| JobSearchFilter::Time(field, condition)),
        (comparison(), 0..1_000_000_i64).prop_map(|(by, span)| JobSearchFilter::Duration(by, Millis::from_secs(span))),
        metric.prop_map(|(name, by, number)| JobSearchFilter::Metric(name, by, number)),
        ("[xyz][ -~]{1,6}", ordered(), number())
            .prop_map(|(name, by, number)| JobSearchFilter::Value(name, by, number)),
        config.prop_map(|(key, by, number)| JobSearchFilter::ConfigNumber(key, by, number)),
        ("[ -~]{1,6}", pattern()).prop_map(|(key, pattern)| JobSearchFilter::ConfigText(key, pattern)),
    ]
}

proptest! {
    #[test]
    fn queries_round_trip(terms in prop::collection::vec((any::<bool>(), filter()), 0..5)) {
        let terms = terms.into_iter().map(|(negated, filter)| SearchTerm { negated, filter });
        let query = SearchTerms(terms.collect());
        prop_assert_eq!(JobSearchQuery::parse(&query.to_string()), Ok(query));
    }

    #[test]
    fn no_input_panics_and_parsed_queries_are_stable(text in ".{0,40}") {
        if let Ok(query) = JobSearchQuery::parse(&text) {
            prop_assert_eq!(JobSearchQuery::parse(&query.to_string()), Ok(query));
        }
    }

    #[test]
    fn no_comparison_panics_and_parsed_queries_are_stable(text in "-?(loss|gpus|ended|duration|metric.a|config.b)[:=<>]{1,2}[-0-9a-z.]{0,8}") {
        if let Ok(query) = JobSearchQuery::parse(&text) {
            prop_assert_eq!(JobSearchQuery::parse(&query.to_string()), Ok(query));
        }
    }
}
