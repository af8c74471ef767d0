//! Terminal colors: interprets `ESC [ … m` (SGR; ECMA-48, 8.3.117).

/// A terminal color, as far as pages distinguish them: bright colors are the same as normal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalColor {
    /// Black, also used for text in the default color on a background.
    Black,
    /// Red.
    Red,
    /// Green.
    Green,
    /// Yellow.
    Yellow,
    /// Blue.
    Blue,
    /// Magenta.
    Magenta,
    /// Cyan.
    Cyan,
    /// White.
    White,
    /// Bright black.
    Gray,
}

/// The RGB values of the 16 terminal colors, to find the nearest one.
const PALETTE: [(TerminalColor, [u8; 3]); 16] = [
    (TerminalColor::Black, [0, 0, 0]),
    (TerminalColor::Red, [205, 0, 0]),
    (TerminalColor::Green, [0, 205, 0]),
    (TerminalColor::Yellow, [205, 205, 0]),
    (TerminalColor::Blue, [0, 0, 238]),
    (TerminalColor::Magenta, [205, 0, 205]),
    (TerminalColor::Cyan, [0, 205, 205]),
    (TerminalColor::White, [229, 229, 229]),
    (TerminalColor::Gray, [127, 127, 127]),
    (TerminalColor::Red, [255, 0, 0]),
    (TerminalColor::Green, [0, 255, 0]),
    (TerminalColor::Yellow, [255, 255, 0]),
    (TerminalColor::Blue, [92, 92, 255]),
    (TerminalColor::Magenta, [255, 0, 255]),
    (TerminalColor::Cyan, [0, 255, 255]),
    (TerminalColor::White, [255, 255, 255]),
];

impl TerminalColor {
    /// Returns one of the 16 colors.
    fn from_index(number: u16) -> Option<Self> {
        PALETTE.get(usize::from(number)).map(|(color, _)| *color)
    }

    /// Returns one of 256 colors: the 16, a cube of six levels, and grays.
    fn from_256(number: u16) -> Option<Self> {
        let level = |step: u16| if step == 0 { 0 } else { 55 + 40 * step };
        match number {
            0..=15 => Self::from_index(number),
            16..=231 => {
                let cube = number - 16;
                Self::nearest([level(cube / 36), level(cube / 6 % 6), level(cube % 6)])
            }
            232..=255 => Self::nearest([8 + 10 * (number - 232); 3]),
            _ => None,
        }
    }

    fn nearest(rgb: [u16; 3]) -> Option<Self> {
        let distance = |color: &[u8; 3]| -> u32 {
            color.iter().zip(rgb).map(|(part, value)| u32::from(u16::from(*part).abs_diff(value)).pow(2)).sum()
        };
        let is_valid = rgb.iter().all(|part| *part < 256);
        PALETTE.iter().filter(|_| is_valid).min_by_key(|(_, color)| distance(color)).map(|(color, _)| *color)
    }
}

/// The style of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "these are independent attributes of a terminal")]
pub struct TextStyle {
    /// The text color; none for the default.
    pub foreground: Option<TerminalColor>,
    /// The background color; none for the default.
    pub background: Option<TerminalColor>,
    /// Bold.
    pub bold: bool,
    /// Dimmed.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined in any style.
    pub underlined: bool,
    /// Struck through.
    pub strikethrough: bool,
}

/// The current state of the terminal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SgrState {
    style: TextStyle,
    /// Whether text and background colors are swapped.
    inverse: bool,
}

impl SgrState {
    /// Returns the resulting style.
    pub fn style(self) -> TextStyle {
        let TextStyle { foreground: text, background, .. } = self.style;
        if self.inverse {
            TextStyle { foreground: background, background: text.or(Some(TerminalColor::Black)), ..self.style }
        } else {
            self.style
        }
    }

    /// Applies the parameters of a sequence: numbers separated by `;`, some with parts separated by `:`. Invalid
    /// parameters change nothing.
    pub fn apply(mut self, parameters: &str) -> Self {
        let mut remaining = parameters.split(';');
        while let Some(parameter) = remaining.next() {
            let mut parts = parameter.split(':').map(parse_number);
            let Some(Some(code)) = parts.next() else { continue };
            match code {
                38 | 48 | 58 => {
                    let color = if parameter.contains(':') {
                        parse_colon_color(parts)
                    } else {
                        parse_semicolon_color(&mut remaining)
                    };
                    match (code, color) {
                        (38, Some(color)) => self.style.foreground = Some(color),
                        (48, Some(color)) => self.style.background = Some(color),
                        _ => {}
                    }
                }
                4 => self.style.underlined = parts.next() != Some(Some(0)),
                _ => self.apply_code(code),
            }
        }
        self
    }

    fn apply_code(&mut self, code: u16) {
        let style = &mut self.style;
        match code {
            0 => *self = Self::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            7 => self.inverse = true,
            9 => style.strikethrough = true,
            21 => style.underlined = true,
            22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underlined = false,
            27 => self.inverse = false,
            29 => style.strikethrough = false,
            30..=37 => style.foreground = TerminalColor::from_index(code - 30),
            39 => style.foreground = None,
            40..=47 => style.background = TerminalColor::from_index(code - 40),
            49 => style.background = None,
            90..=97 => style.foreground = TerminalColor::from_index(code - 90 + 8),
            100..=107 => style.background = TerminalColor::from_index(code - 100 + 8),
            // Blinking and hidden text do not matter in a log.
            _ => {}
        }
    }
}

/// Parses a number; empty means 0.
fn parse_number(text: &str) -> Option<u16> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

/// `38:5:n`, `38:2:r:g:b`, `38:2:space:r:g:b`.
fn parse_colon_color(mut parts: impl Iterator<Item = Option<u16>>) -> Option<TerminalColor> {
    match parts.next()?? {
        5 => TerminalColor::from_256(parts.next()??),
        2 => {
            let mut rgb: Vec<Option<u16>> = parts.take(4).collect();
            if rgb.len() == 4 {
                rgb.remove(0);
            }
            let [red, green, blue] = rgb[..] else { return None };
            TerminalColor::nearest([red?, green?, blue?])
        }
        _ => None,
    }
}

/// `38;5;n`, `38;2;r;g;b`, the most common form.
fn parse_semicolon_color<'p>(rest: &mut impl Iterator<Item = &'p str>) -> Option<TerminalColor> {
    let mut next = || rest.next().and_then(parse_number);
    match next()? {
        5 => TerminalColor::from_256(next()?),
        2 => {
            let (red, green, blue) = (next(), next(), next());
            TerminalColor::nearest([red?, green?, blue?])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the sequences one after the other.
    fn style_after(sequences: &[&str]) -> TextStyle {
        sequences.iter().fold(SgrState::default(), |state, sequence| state.apply(sequence)).style()
    }

    fn colors(sequence: &str) -> (Option<TerminalColor>, Option<TerminalColor>) {
        let TextStyle { foreground: text, background, .. } = style_after(&[sequence]);
        (text, background)
    }

    #[test]
    fn colors_are_mapped_to_the_nearest_of_16() {
        for (sequence, text) in [
            ("38;5;31", TerminalColor::Cyan),
            ("38;5;9", TerminalColor::Red),
            ("38;5;208", TerminalColor::Yellow),
            ("38;5;21", TerminalColor::Blue),
            ("38;5;232", TerminalColor::Black),
            ("38;5;244", TerminalColor::Gray),
            ("38;5;255", TerminalColor::White),
            ("38;2;255;0;0", TerminalColor::Red),
            ("38;2;10;200;30", TerminalColor::Green),
            ("38:5:13", TerminalColor::Magenta),
            ("38:2:0:0:250", TerminalColor::Blue),
            ("38:2::0:250:250", TerminalColor::Cyan),
        ] {
            assert_eq!(colors(sequence), (Some(text), None), "{sequence}");
            assert_eq!(colors(&sequence.replacen("38", "48", 1)), (None, Some(text)), "{sequence}");
        }
    }

    #[test]
    fn color_parameters_are_not_other_codes() {
        let style = style_after(&["1;38;5;0;48;2;0;0;0;4"]);
        assert_eq!((style.foreground, style.background), (Some(TerminalColor::Black), Some(TerminalColor::Black)));
        assert!(style.bold && style.underlined, "a 0 inside a color does not reset");
        let red = style_after(&["31", "58;2;1;2;3", "58:5:9"]);
        assert_eq!(
            red,
            TextStyle { foreground: Some(TerminalColor::Red), ..TextStyle::default() },
            "the color of an underline is not shown"
        );
    }

    #[test]
    fn attributes_stay_on_until_reset() {
        let all_attributes = "1;2;3;4;7;9;31;44";
        let style = style_after(&[all_attributes]);
        assert_eq!(
            (style.foreground, style.background),
            (Some(TerminalColor::Blue), Some(TerminalColor::Red)),
            "they are swapped"
        );
        assert!(style.bold && style.dim && style.italic && style.underlined && style.strikethrough);
        assert_eq!(style_after(&[all_attributes, "22;23;24;27;29;39;49"]), TextStyle::default());
        for reset in ["", "0", ";", "0;", "00"] {
            assert_eq!(style_after(&[all_attributes, reset]), TextStyle::default(), "{reset:?}");
        }
        assert_eq!(
            style_after(&["7"]).background,
            Some(TerminalColor::Black),
            "inverted default text is light on dark"
        );
        assert!(style_after(&["4:3"]).underlined && !style_after(&["4", "4:0"]).underlined);
        assert_eq!(colors("93;101"), (Some(TerminalColor::Yellow), Some(TerminalColor::Red)));
        assert_eq!(colors("90"), (Some(TerminalColor::Gray), None));
    }

    #[test]
    fn invalid_sequences_change_nothing() {
        for sequence in [
            "38",
            "38;5",
            "38;5;256",
            "38;2;1;2",
            "38;2;1;2;999",
            "38:5",
            "38:2:1:2",
            "38:9:1",
            "99999",
            "x",
            "8",
            "-1",
        ] {
            assert_eq!(style_after(&[sequence]), TextStyle::default(), "{sequence}");
        }
        assert_eq!(colors("999999;31"), (Some(TerminalColor::Red), None));
    }
}
