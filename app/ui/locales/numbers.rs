//! How languages write numbers, after the Unicode Common Locale Data Repository (CLDR).

use crate::ui::prefs::Locale;

impl Locale {
    /// The decimal separator.
    const fn decimal(self) -> char {
        match self {
            Self::En | Self::Hi | Self::Ja | Self::Zh => '.',
            Self::Es | Self::Pt => ',',
        }
    }

    /// The separator between groups of digits.
    const fn separator(self) -> char {
        match self {
            Self::En | Self::Hi | Self::Ja | Self::Zh => ',',
            Self::Es | Self::Pt => '.',
        }
    }

    /// A whole number: `12,400`, `12.400`, `12,34,567`.
    pub(crate) fn integer(self, number: u64) -> String {
        let digits = number.to_string();
        // Spanish groups only numbers of at least five digits.
        if self == Self::Es && digits.len() < 5 {
            return digits;
        }
        let mut text = String::with_capacity(digits.len() + digits.len() / 2);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && self.begins_group(digits.len() - index) {
                text.push(self.separator());
            }
            text.push(digit);
        }
        text
    }

    /// Whether a group of digits begins if this many digits are left.
    const fn begins_group(self, digits_left: usize) -> bool {
        match self {
            // Thousands, then hundreds of them: lakh and crore.
            Self::Hi => digits_left == 3 || (digits_left > 3 && digits_left % 2 == 1),
            _ => digits_left.is_multiple_of(3),
        }
    }

    /// A number with this many digits after the decimal separator.
    pub(crate) fn fixed(self, value: f64, digits: usize) -> String {
        let text = format!("{value:.digits$}");
        if self.decimal() == '.' { text } else { text.replace('.', ",") }
    }

    /// A percentage: `41%`, `41 %`.
    pub(crate) fn with_percent_sign(self, number: &str) -> String {
        if self == Self::Es { format!("{number}\u{a0}%") } else { format!("{number}%") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_grouped_as_the_language_does() {
        let million = 1_234_567;
        let written = Locale::ALL.map(|locale| locale.integer(million));
        assert_eq!(written, ["1,234,567", "1.234.567", "12,34,567", "1,234,567", "1.234.567", "1,234,567"]);
        let thousand = Locale::ALL.map(|locale| locale.integer(1_000));
        assert_eq!(thousand, ["1,000", "1000", "1,000", "1,000", "1.000", "1,000"]);
        assert!(Locale::ALL.into_iter().all(|locale| locale.integer(999) == "999" && locale.integer(0) == "0"));
    }

    #[test]
    fn fractions_and_percentages() {
        assert_eq!(Locale::ALL.map(|locale| locale.fixed(0.5, 2)), ["0.50", "0,50", "0.50", "0.50", "0,50", "0.50"]);
        assert_eq!(Locale::Es.with_percent_sign("41"), "41\u{a0}%");
        assert_eq!(Locale::Zh.with_percent_sign("41"), "41%");
    }
}
