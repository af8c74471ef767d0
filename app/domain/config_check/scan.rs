//! Reads JSON with the place of each key and value at the top, and finds where a text is not JSON.
//!
//! It accepts what `serde_json` accepts. That one reports where it stopped; this one, what is wrong there.

use std::collections::BTreeSet;
use std::ops::Range;

/// The depth at which `serde_json` gives up.
const MAX_DEPTH: usize = 128;

/// Why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntaxFault {
    /// It has no value.
    Empty,
    /// It starts with a byte order mark.
    ByteOrderMark,
    /// A bracket is not closed.
    UnclosedBracket,
    /// A string is not closed on its line.
    UnclosedString,
    /// A comma before a closing bracket.
    TrailingComma,
    /// A comma is missing before this.
    MissingComma,
    /// A colon is missing before this.
    MissingColon,
    /// A key or a value is missing before this.
    MissingValue,
    /// A key without double quotes.
    UnquotedKey,
    /// A string in single quotes.
    SingleQuotes,
    /// A comment.
    Comment,
    /// A word that is no value, such as `True`.
    UnknownWord,
    /// Not a number of JSON, such as `.5` or `1.`.
    InvalidNumber,
    /// A number that is too large.
    NumberTooLarge,
    /// A backslash with something that it cannot escape.
    InvalidEscape,
    /// A control character in a string, such as a tab.
    ControlCharacter,
    /// A character that stands for nothing here.
    UnexpectedCharacter,
    /// More text after the end.
    TextAfterEnd,
    /// Too many brackets inside each other.
    TooDeep,
}

impl SyntaxFault {
    /// All faults.
    pub const ALL: [Self; 19] = [
        Self::Empty,
        Self::ByteOrderMark,
        Self::UnclosedBracket,
        Self::UnclosedString,
        Self::TrailingComma,
        Self::MissingComma,
        Self::MissingColon,
        Self::MissingValue,
        Self::UnquotedKey,
        Self::SingleQuotes,
        Self::Comment,
        Self::UnknownWord,
        Self::InvalidNumber,
        Self::NumberTooLarge,
        Self::InvalidEscape,
        Self::ControlCharacter,
        Self::UnexpectedCharacter,
        Self::TextAfterEnd,
        Self::TooDeep,
    ];
}

/// A fault and its place, in bytes.
pub type Fault = (SyntaxFault, Range<usize>);

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Switch(bool),
    /// A number, as it is written.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List,
    /// An object.
    Object(Vec<Member>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key, without escapes.
    pub key: String,
    /// Where the key is, with its quotes.
    pub key_span: Range<usize>,
    /// Where the value is.
    pub value_span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// The outermost value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Where it is.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

impl Root {
    /// Returns the members, if it is an object.
    pub fn members(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }
}

/// A text that is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// Its value.
    pub root: Root,
    /// Keys that an object has already, with the place of the later one.
    pub duplicates: Vec<(String, Range<usize>)>,
}

/// Reads a text.
///
/// # Errors
///
/// The first fault and its place.
pub fn scan(text: &str) -> Result<Scanned, Fault> {
    if text.starts_with('\u{feff}') {
        return Err((SyntaxFault::ByteOrderMark, 0..'\u{feff}'.len_utf8()));
    }
    let mut scanner = Scanner { text, at: 0, depth: 0, duplicates: Vec::new() };
    scanner.skip_whitespace();
    if scanner.peek().is_none() {
        return Err((SyntaxFault::Empty, 0..text.len()));
    }
    let start = scanner.at;
    let value = scanner.value()?;
    let span = start..scanner.at;
    scanner.skip_whitespace();
    match scanner.peek() {
        None => Ok(Scanned { root: Root { span, value }, duplicates: scanner.duplicates }),
        Some('/' | '#') => Err((SyntaxFault::Comment, scanner.rest_of_line())),
        Some(_) => Err((SyntaxFault::TextAfterEnd, scanner.rest_of_line())),
    }
}

/// Returns whether a text is a number of JSON.
pub fn is_number(text: &str) -> bool {
    number_fault(text).is_none()
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    duplicates: Vec<(String, Range<usize>)>,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_whitespace(&mut self) {
        self.at += self.run_length(|letter| matches!(letter, ' ' | '\t' | '\n' | '\r'));
    }

    fn run_length(&self, belongs: impl Fn(char) -> bool) -> usize {
        self.rest().find(|letter| !belongs(letter)).unwrap_or(self.rest().len())
    }

    fn rest_of_line(&self) -> Range<usize> {
        self.at..self.at + self.run_length(|letter| !matches!(letter, '\n' | '\r'))
    }

    /// The place of the next character.
    fn next_span(&self) -> Range<usize> {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    fn value(&mut self) -> Result<Value, Fault> {
        let word_length = self.run_length(|letter| letter.is_alphanumeric() || letter == '_');
        match self.peek() {
            Some('"') => self.string().map(Value::Text),
            Some('{') => self.nested(Self::object).map(Value::Object),
            Some('[') => self.nested(Self::list).map(|()| Value::List),
            Some('-' | '+' | '.' | '0'..='9') => self.number(),
            Some(letter) if letter.is_alphabetic() || letter == '_' => {
                let value = match self.rest().get(..word_length) {
                    Some("null") => Value::Null,
                    Some("true") => Value::Switch(true),
                    Some("false") => Value::Switch(false),
                    _ => return Err((SyntaxFault::UnknownWord, self.at..self.at + word_length)),
                };
                self.at += word_length;
                Ok(value)
            }
            Some(',' | ':' | '}' | ']') | None => Err((SyntaxFault::MissingValue, self.next_span())),
            Some(letter) => Err(self.stray(letter)),
        }
    }

    /// A character that begins no value and no key.
    fn stray(&self, letter: char) -> Fault {
        match letter {
            '\'' => (SyntaxFault::SingleQuotes, self.next_span()),
            '/' | '#' => (SyntaxFault::Comment, self.rest_of_line()),
            _ => (SyntaxFault::UnexpectedCharacter, self.next_span()),
        }
    }

    /// Reads what is between two brackets.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self, Range<usize>) -> Result<T, Fault>) -> Result<T, Fault> {
        let open = self.next_span();
        self.depth += 1;
        if self.depth == MAX_DEPTH {
            return Err((SyntaxFault::TooDeep, open));
        }
        self.at += 1;
        let read = read(self, open)?;
        self.depth -= 1;
        Ok(read)
    }

    fn object(&mut self, open: Range<usize>) -> Result<Vec<Member>, Fault> {
        let (mut members, mut keys, mut comma) = (Vec::new(), BTreeSet::new(), None);
        loop {
            self.skip_whitespace();
            match self.peek() {
                None => return Err((SyntaxFault::UnclosedBracket, open)),
                Some('}') => return self.close(comma).map(|()| members),
                Some('"') => {}
                Some(',' | ':' | ']') => return Err((SyntaxFault::MissingValue, self.next_span())),
                Some(letter) if letter.is_alphanumeric() || matches!(letter, '_' | '-') => {
                    let length = self.run_length(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'));
                    return Err((SyntaxFault::UnquotedKey, self.at..self.at + length));
                }
                Some(letter) => return Err(self.stray(letter)),
            }
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            self.skip_whitespace();
            match self.peek() {
                None => return Err((SyntaxFault::UnclosedBracket, open)),
                Some(':') => self.at += 1,
                Some(_) => return Err((SyntaxFault::MissingColon, self.next_span())),
            }
            self.skip_whitespace();
            if self.peek().is_none() {
                return Err((SyntaxFault::UnclosedBracket, open));
            }
            let start = self.at;
            let value = self.value()?;
            let value_span = start..self.at;
            if !keys.insert(key.clone()) {
                self.duplicates.push((key.clone(), key_span.clone()));
            }
            members.push(Member { key, key_span, value_span, value });
            comma = self.separator('}', &open)?;
        }
    }

    fn list(&mut self, open: Range<usize>) -> Result<(), Fault> {
        let mut comma = None;
        loop {
            self.skip_whitespace();
            match self.peek() {
                None => return Err((SyntaxFault::UnclosedBracket, open)),
                Some(']') => return self.close(comma),
                Some(_) => drop(self.value()?),
            }
            comma = self.separator(']', &open)?;
        }
    }

    /// Reads the closing bracket, which must not follow a comma.
    fn close(&mut self, comma: Option<Range<usize>>) -> Result<(), Fault> {
        if let Some(comma) = comma {
            return Err((SyntaxFault::TrailingComma, comma));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the comma after a value; none before the closing bracket, which stays.
    fn separator(&mut self, closing: char, open: &Range<usize>) -> Result<Option<Range<usize>>, Fault> {
        self.skip_whitespace();
        let next = self.next_span();
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Ok(Some(next))
            }
            Some(letter) if letter == closing => Ok(None),
            Some('/' | '#') => Err((SyntaxFault::Comment, self.rest_of_line())),
            None | Some('}' | ']') => Err((SyntaxFault::UnclosedBracket, open.clone())),
            Some(':') => Err((SyntaxFault::UnexpectedCharacter, next)),
            Some(_) => Err((SyntaxFault::MissingComma, next)),
        }
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let length = self.run_length(|letter| letter.is_alphanumeric() || matches!(letter, '+' | '-' | '.' | '_'));
        let (span, text) = (self.at..self.at + length, self.rest().get(..length).unwrap_or_default().to_owned());
        self.at += length;
        number_fault(&text).map_or(Ok(Value::Number(text)), |fault| Err((fault, span)))
    }

    /// Reads a string, and returns it without escapes.
    fn string(&mut self) -> Result<String, Fault> {
        let open = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(letter) = self.peek() {
            match letter {
                '"' => {
                    self.at += 1;
                    return Ok(text);
                }
                '\\' => text.push(self.escape()?),
                '\n' | '\r' => break,
                control if control < ' ' => return Err((SyntaxFault::ControlCharacter, self.next_span())),
                letter => {
                    text.push(letter);
                    self.at += letter.len_utf8();
                }
            }
        }
        Err((SyntaxFault::UnclosedString, open..self.at))
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        let escaped = self.rest().chars().nth(1);
        let invalid = (SyntaxFault::InvalidEscape, start..start + 1 + escaped.map_or(0, char::len_utf8));
        let letter = match escaped.ok_or_else(|| invalid.clone())? {
            letter @ ('"' | '\\' | '/') => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode_escape().ok_or(invalid),
            _ => return Err(invalid),
        };
        self.at += 2;
        Ok(letter)
    }

    /// `\u0041`, or a pair of surrogates.
    fn unicode_escape(&mut self) -> Option<char> {
        let unit = |text: &str| {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
        };
        let first = unit(self.rest())?;
        let second = if (0xd800..0xdc00).contains(&first) { Some(unit(self.rest().get(6..)?)?) } else { None };
        let letter = char::decode_utf16([first].into_iter().chain(second)).next()?.ok()?;
        self.at += if second.is_some() { 12 } else { 6 };
        Some(letter)
    }
}

/// Returns why a text is not a number, if it is none.
fn number_fault(text: &str) -> Option<SyntaxFault> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) =
        unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(mantissa, exponent)| (mantissa, Some(exponent)));
    let (integer, fraction) =
        mantissa.split_once('.').map_or((mantissa, None), |(integer, fraction)| (integer, Some(fraction)));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    let is_valid = are_digits(integer)
        && (integer == "0" || !integer.starts_with('0'))
        && fraction.is_none_or(are_digits)
        && exponent.is_none_or(are_digits);
    if !is_valid {
        return Some(SyntaxFault::InvalidNumber);
    }
    let is_finite = text.parse::<f64>().is_ok_and(f64::is_finite);
    (!is_finite).then_some(SyntaxFault::NumberTooLarge)
}
