//! How the charts of a page are drawn, as its address says it.

use std::collections::BTreeMap;

use leptos_router::params::ParamsMap;

use crate::protocol::percent_encoding;
use crate::ui::axis::AxisRange;

/// The quantity of the x axis of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Horizontal {
    #[default]
    Steps,
    Epochs,
    Time,
}

impl Horizontal {
    /// The parameter of the address.
    pub const KEY: &'static str = "x";

    /// Its word in the address; none for the default.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Steps => None,
            Self::Epochs => Some("epoch"),
            Self::Time => Some("time"),
        }
    }
}

/// The weight of previous values in smoothing, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Smoothing(u8);

impl Default for Smoothing {
    fn default() -> Self {
        Self(92)
    }
}

impl Smoothing {
    pub const MAX: f64 = 0.99;

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 99")]
    pub fn new(weight: f64) -> Self {
        Self((weight.clamp(0.0, Self::MAX) * 100.0).round() as u8)
    }

    pub fn weight(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    pub const fn is_on(self) -> bool {
        self.0 > 0
    }
}

/// The ends of a y axis that the reader has chosen; the others follow the values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct YLimits {
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl YLimits {
    /// Reads both as typed. What is no number is automatic, and so are ends in the wrong order.
    pub fn parse(low: &str, high: &str) -> Self {
        let (low, high) = (finite(low), finite(high));
        if low.zip(high).is_some_and(|(low, high)| low >= high) { Self::default() } else { Self { low, high } }
    }

    pub fn apply(self, range: AxisRange) -> AxisRange {
        let limited = AxisRange { low: self.low.unwrap_or(range.low), high: self.high.unwrap_or(range.high) };
        if limited.low < limited.high { limited } else { range }
    }
}

/// How the charts of a page are drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ChartOptions {
    pub horizontal: Horizontal,
    pub has_log_x: bool,
    pub has_log_y: bool,
    pub smoothing: Smoothing,
    /// The visible part of the x axis; all of it if none.
    pub zoom: Option<AxisRange>,
    /// The position at which values are shown.
    pub pinned: Option<f64>,
    /// Whether each attempt is a line.
    pub has_all_attempts: bool,
    /// The y axes that do not follow the values, by metric.
    pub y_limits: BTreeMap<String, YLimits>,
}

/// A field of the options, with its parameter in the address.
enum Field {
    /// A choice of two, with the word of the one that is not the default.
    Flag(&'static str, &'static str, fn(&mut ChartOptions) -> &mut bool),
    /// Its values as text, and how one of them is read.
    Text(&'static str, fn(&ChartOptions) -> Vec<String>, fn(&mut ChartOptions, &str)),
}

/// All fields. Values that cannot be read change nothing.
const FIELDS: [Field; 8] = [
    Field::Text(
        Horizontal::KEY,
        |options| options.horizontal.word().map(str::to_owned).into_iter().collect(),
        |options, text| {
            let known = [Horizontal::Epochs, Horizontal::Time].into_iter().find(|known| known.word() == Some(text));
            options.horizontal = known.unwrap_or(options.horizontal);
        },
    ),
    Field::Flag("xscale", "log", |options| &mut options.has_log_x),
    Field::Flag("scale", "log", |options| &mut options.has_log_y),
    Field::Text(
        "smooth",
        |options| {
            let changed = Some(options.smoothing).filter(|smoothing| *smoothing != Smoothing::default());
            changed.map(|smoothing| smoothing.weight().to_string()).into_iter().collect()
        },
        |options, text| options.smoothing = finite(text).map_or(options.smoothing, Smoothing::new),
    ),
    Field::Text(
        "zoom",
        |options| options.zoom.map(|zoom| format!("{}~{}", zoom.low, zoom.high)).into_iter().collect(),
        |options, text| options.zoom = parse_zoom(text).or(options.zoom),
    ),
    Field::Text(
        "at",
        |options| options.pinned.map(|at| at.to_string()).into_iter().collect(),
        |options, text| options.pinned = finite(text).or(options.pinned),
    ),
    Field::Flag("attempts", "all", |options| &mut options.has_all_attempts),
    Field::Text(
        "y",
        |options| {
            let number = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
            let text = |(metric, limits): (&String, &YLimits)| {
                format!("{metric}~{}~{}", number(limits.low), number(limits.high))
            };
            options.y_limits.iter().map(text).collect()
        },
        |options, text| {
            if let [high, low, metric] = text.rsplitn(3, '~').collect::<Vec<_>>()[..] {
                options.set_y_limits(metric, YLimits::parse(low, high));
            }
        },
    ),
];

/// Parameters that are positions on the x axis.
pub(crate) const POSITIONS: &[&str] = &["zoom", "at"];

/// What a form of one chart sends: the metric, and both ends of its y axis.
pub(crate) const Y_FORM: [&str; 3] = ["y_of", "y_low", "y_high"];

impl Field {
    const fn key(&self) -> &'static str {
        match self {
            Self::Flag(key, ..) | Self::Text(key, ..) => key,
        }
    }

    fn write(&self, options: &ChartOptions) -> Vec<String> {
        match self {
            Self::Flag(_, word, of) => (*of(&mut options.clone())).then(|| (*word).to_owned()).into_iter().collect(),
            Self::Text(_, write, _) => write(options),
        }
    }

    fn read(&self, options: &mut ChartOptions, text: &str) {
        match self {
            Self::Flag(_, word, of) => *of(options) |= text == *word,
            Self::Text(_, _, read) => read(options, text),
        }
    }
}

impl ChartOptions {
    /// Reads the options from the parameters of an address.
    pub fn from_params(params: &ParamsMap) -> Self {
        let mut options = Self::default();
        for field in &FIELDS {
            for text in params.get_all(field.key()).unwrap_or_default() {
                field.read(&mut options, &text);
            }
        }
        if let [Some(metric), Some(low), Some(high)] = Y_FORM.map(|key| params.get(key)) {
            options.set_y_limits(&metric, YLimits::parse(&low, &high));
        }
        options
    }

    /// Returns the parameters of an address with these options instead of its own.
    pub fn in_params(&self, params: &ParamsMap) -> ParamsMap {
        let mut params = params.clone();
        for key in FIELDS.iter().map(Field::key).chain(Y_FORM) {
            params.remove(key);
        }
        for field in &FIELDS {
            for text in field.write(self) {
                params.insert(field.key(), text);
            }
        }
        params
    }

    /// Sets the ends of the y axis of a metric.
    pub fn set_y_limits(&mut self, metric: &str, limits: YLimits) {
        if limits == YLimits::default() {
            self.y_limits.remove(metric);
        } else {
            self.y_limits.insert(metric.to_owned(), limits);
        }
    }
}

/// Returns the query string of an address, with as few escapes as possible, because users read and share it.
pub(crate) fn query_of(params: &ParamsMap) -> String {
    let mut query = String::new();
    for (key, value) in params {
        query.push(if query.is_empty() { '?' } else { '&' });
        percent_encoding::encode(key, b"", &mut query);
        query.push('=');
        percent_encoding::encode(value, b"/:", &mut query);
    }
    query
}

fn finite(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn parse_zoom(text: &str) -> Option<AxisRange> {
    let (low, high) = text.split_once('~')?;
    let (low, high) = (finite(low)?, finite(high)?);
    (low < high).then_some(AxisRange { low, high })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params(pairs: &[(&'static str, &str)]) -> ParamsMap {
        pairs.iter().fold(ParamsMap::new(), |mut params, (key, value)| {
            params.insert(*key, (*value).to_owned());
            params
        })
    }

    fn some_options() -> impl Strategy<Value = ChartOptions> {
        let number = || prop_oneof![-1e9..1e9_f64, (-1_000..1_000_i32).prop_map(f64::from)];
        let range = (number(), 1e-3..1e6_f64).prop_map(|(low, width)| AxisRange { low, high: low + width });
        let horizontal = prop_oneof![Just(Horizontal::Steps), Just(Horizontal::Epochs), Just(Horizontal::Time)];
        let limits = (prop::option::of(number()), prop::option::of(number()))
            .prop_map(|(low, high)| YLimits { low: low.filter(|low| high.is_none_or(|high| *low < high)), high })
            .prop_filter("not automatic", |limits| *limits != YLimits::default());
        // Without percent signs, because `ParamsMap` decodes values that are already decoded.
        let y_limits = prop::collection::btree_map("[^%]{0,8}", limits, 0..4);
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        let ranges = (prop::option::of(range), prop::option::of(number()), y_limits);
        (horizontal, flags, 0.0..=1.0_f64, ranges).prop_map(
            |(horizontal, (has_log_x, has_log_y, has_all_attempts), weight, (zoom, pinned, y_limits))| ChartOptions {
                horizontal,
                has_log_x,
                has_log_y,
                smoothing: Smoothing::new(weight),
                zoom,
                pinned,
                has_all_attempts,
                y_limits,
            },
        )
    }

    proptest! {
        #[test]
        fn options_survive_the_way_through_an_address(options in some_options()) {
            let written = options.in_params(&params(&[("show", "charts"), ("zoom", "1~2"), ("y", "a~0~1")]));
            prop_assert!(written.get_str("show") == Some("charts"), "others stay");
            prop_assert_eq!(ChartOptions::from_params(&written), options);
        }

        #[test]
        fn any_address_can_be_read(text in "[^%]{0,12}") {
            for field in &FIELDS {
                let options = ChartOptions::from_params(&params(&[(field.key(), &text)]));
                prop_assert!(options.zoom.is_none_or(|zoom| zoom.low < zoom.high));
                prop_assert!(options.smoothing.weight() <= Smoothing::MAX);
            }
        }
    }

    #[test]
    fn defaults_are_not_in_the_address_and_nonsense_is_the_default() {
        assert_eq!(ChartOptions::default().in_params(&ParamsMap::new()), ParamsMap::new());
        let odd =
            params(&[("x", "odd"), ("scale", "odd"), ("smooth", "x"), ("zoom", "9~1"), ("at", "NaN"), ("y", "1")]);
        assert_eq!(ChartOptions::from_params(&odd), ChartOptions::default());
        let weight = |text| ChartOptions::from_params(&params(&[("smooth", text)])).smoothing.weight();
        assert_eq!(["0.6", "0", "7", "-1", ""].map(weight).to_vec(), [0.6, 0.0, 0.99, 0.0, 0.92]);
    }

    #[test]
    fn addresses_can_be_read() {
        let zoom = Some(AxisRange { low: 0.5, high: 20.0 });
        let loss = BTreeMap::from([("val/a b".to_owned(), YLimits { low: None, high: Some(2.0) })]);
        let options = ChartOptions { zoom, y_limits: loss, ..ChartOptions::default() };
        let address = query_of(&options.in_params(&params(&[("show", "charts")])));
        assert_eq!(address, "?show=charts&zoom=0.5~20&y=val/a%20b~~2");
        assert_eq!(query_of(&ParamsMap::new()), "");
    }

    #[test]
    fn a_form_sets_the_ends_of_one_axis() {
        let form = |low: &str, high: &str| {
            let sent =
                params(&[("y", "loss~0~1"), ("y", "fid~~9"), ("y_of", "loss"), ("y_low", low), ("y_high", high)]);
            ChartOptions::from_params(&sent)
        };
        let fid = ("fid".to_owned(), YLimits { low: None, high: Some(9.0) });
        let loss = ("loss".to_owned(), YLimits { low: Some(0.5), high: Some(2.0) });
        assert_eq!(form("0.5", "2").y_limits, BTreeMap::from([fid.clone(), loss]));
        assert_eq!(form("", "").y_limits, BTreeMap::from([fid.clone()]), "automatic again");
        assert_eq!(form("2", "1").y_limits, BTreeMap::from([fid]), "no range");
    }

    #[test]
    fn limits_replace_the_ends_of_a_range() {
        let range = AxisRange { low: 1.0, high: 2.0 };
        let limited = |low, high| YLimits { low, high }.apply(range);
        assert_eq!(limited(None, None), range);
        assert_eq!(limited(Some(0.0), None), AxisRange { low: 0.0, high: 2.0 });
        assert_eq!(limited(Some(3.0), None), range, "nothing would be visible");
    }
}
