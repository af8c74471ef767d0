//! The colours of a terminal: what `ESC [ … m` (SGR; ECMA-48, 8.3.117) makes of those before it.

/// A colour of a terminal, as far as pages tell them apart: bright ones are the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Black, or what stands for no colour at all on a background.
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
    Grey,
}

/// What terminals make of their 16 colours, to find the nearest of them.
const PALETTE: [(Color, [u8; 3]); 16] = [
    (Color::Black, [0, 0, 0]),
    (Color::Red, [205, 0, 0]),
    (Color::Green, [0, 205, 0]),
    (Color::Yellow, [205, 205, 0]),
    (Color::Blue, [0, 0, 238]),
    (Color::Magenta, [205, 0, 205]),
    (Color::Cyan, [0, 205, 205]),
    (Color::White, [229, 229, 229]),
    (Color::Grey, [127, 127, 127]),
    (Color::Red, [255, 0, 0]),
    (Color::Green, [0, 255, 0]),
    (Color::Yellow, [255, 255, 0]),
    (Color::Blue, [92, 92, 255]),
    (Color::Magenta, [255, 0, 255]),
    (Color::Cyan, [0, 255, 255]),
    (Color::White, [255, 255, 255]),
];

impl Color {
    /// One of the 16.
    fn of(number: u16) -> Option<Self> {
        PALETTE.get(usize::from(number)).map(|(color, _)| *color)
    }

    /// One of 256: the 16, a cube of six levels, greys.
    fn of_256(number: u16) -> Option<Self> {
        let level = |step: u16| if step == 0 { 0 } else { 55 + 40 * step };
        match number {
            0..=15 => Self::of(number),
            16..=231 => {
                let cube = number - 16;
                Self::nearest([level(cube / 36), level(cube / 6 % 6), level(cube % 6)])
            }
            232..=255 => Self::nearest([8 + 10 * (number - 232); 3]),
            _ => None,
        }
    }

    fn nearest(rgb: [u16; 3]) -> Option<Self> {
        let far = |known: &[u8; 3]| -> u32 {
            known.iter().zip(rgb).map(|(known, asked)| u32::from(u16::from(*known).abs_diff(asked)).pow(2)).sum()
        };
        let known = rgb.iter().all(|part| *part < 256);
        PALETTE.iter().filter(|_| known).min_by_key(|(_, known)| far(known)).map(|(color, _)| *color)
    }
}

/// How a span is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a terminal has as many switches, each by itself")]
pub struct Ink {
    /// The text's colour; none is that of the rest.
    pub text: Option<Color>,
    /// What is behind it; none is nothing.
    pub back: Option<Color>,
    /// Bold.
    pub strong: bool,
    /// Dimmed.
    pub faint: bool,
    /// Italic.
    pub slanted: bool,
    /// Underlined, in whatever way.
    pub underlined: bool,
    /// Struck through.
    pub struck: bool,
}

/// What a terminal writes with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pen {
    ink: Ink,
    /// Whether text and background change places.
    inverse: bool,
}

impl Pen {
    /// How what it writes is shown.
    pub fn ink(self) -> Ink {
        let Ink { text, back, .. } = self.ink;
        if self.inverse { Ink { text: back, back: text.or(Some(Color::Black)), ..self.ink } } else { self.ink }
    }

    /// The pen after a sequence's parameters: numbers between `;`, some with parts of their own between `:`. What makes no
    /// sense changes nothing.
    pub fn after(mut self, parameters: &str) -> Self {
        let mut all = parameters.split(';');
        while let Some(parameter) = all.next() {
            let mut parts = parameter.split(':').map(number);
            let Some(Some(code)) = parts.next() else { continue };
            match code {
                38 | 48 | 58 => {
                    let color = if parameter.contains(':') { by_parts(parts) } else { by_parameters(&mut all) };
                    match (code, color) {
                        (38, Some(color)) => self.ink.text = Some(color),
                        (48, Some(color)) => self.ink.back = Some(color),
                        _ => {}
                    }
                }
                4 => self.ink.underlined = parts.next() != Some(Some(0)),
                _ => self.set(code),
            }
        }
        self
    }

    fn set(&mut self, code: u16) {
        let ink = &mut self.ink;
        match code {
            0 => *self = Self::default(),
            1 => ink.strong = true,
            2 => ink.faint = true,
            3 => ink.slanted = true,
            7 => self.inverse = true,
            9 => ink.struck = true,
            21 => ink.underlined = true,
            22 => (ink.strong, ink.faint) = (false, false),
            23 => ink.slanted = false,
            24 => ink.underlined = false,
            27 => self.inverse = false,
            29 => ink.struck = false,
            30..=37 => ink.text = Color::of(code - 30),
            39 => ink.text = None,
            40..=47 => ink.back = Color::of(code - 40),
            49 => ink.back = None,
            90..=97 => ink.text = Color::of(code - 90 + 8),
            100..=107 => ink.back = Color::of(code - 100 + 8),
            // Of blinking and hidden text a reader of a log has nothing.
            _ => {}
        }
    }
}

/// A number; nothing stands for 0.
fn number(text: &str) -> Option<u16> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

/// `38:5:n`, `38:2:r:g:b`, `38:2:space:r:g:b`.
fn by_parts(mut parts: impl Iterator<Item = Option<u16>>) -> Option<Color> {
    match parts.next()?? {
        5 => Color::of_256(parts.next()??),
        2 => {
            let mut rgb: Vec<Option<u16>> = parts.take(4).collect();
            if rgb.len() == 4 {
                rgb.remove(0);
            }
            let [red, green, blue] = rgb[..] else { return None };
            Color::nearest([red?, green?, blue?])
        }
        _ => None,
    }
}

/// `38;5;n`, `38;2;r;g;b`, as most programs write it.
fn by_parameters<'p>(rest: &mut impl Iterator<Item = &'p str>) -> Option<Color> {
    let mut next = || rest.next().and_then(number);
    match next()? {
        5 => Color::of_256(next()?),
        2 => {
            let (red, green, blue) = (next(), next(), next());
            Color::nearest([red?, green?, blue?])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ink of these sequences, one after the other.
    fn ink(sequences: &[&str]) -> Ink {
        sequences.iter().fold(Pen::default(), |pen, sequence| pen.after(sequence)).ink()
    }

    fn colors(sequence: &str) -> (Option<Color>, Option<Color>) {
        let Ink { text, back, .. } = ink(&[sequence]);
        (text, back)
    }

    #[test]
    fn the_256_and_all_colours_are_the_nearest_of_16() {
        for (sequence, text) in [
            ("38;5;31", Color::Cyan),
            ("38;5;9", Color::Red),
            ("38;5;208", Color::Yellow),
            ("38;5;21", Color::Blue),
            ("38;5;232", Color::Black),
            ("38;5;244", Color::Grey),
            ("38;5;255", Color::White),
            ("38;2;255;0;0", Color::Red),
            ("38;2;10;200;30", Color::Green),
            ("38:5:13", Color::Magenta),
            ("38:2:0:0:250", Color::Blue),
            ("38:2::0:250:250", Color::Cyan),
        ] {
            assert_eq!(colors(sequence), (Some(text), None), "{sequence}");
            assert_eq!(colors(&sequence.replacen("38", "48", 1)), (None, Some(text)), "{sequence}");
        }
    }

    #[test]
    fn what_belongs_to_a_colour_is_nothing_else() {
        let all = ink(&["1;38;5;0;48;2;0;0;0;4"]);
        assert_eq!((all.text, all.back), (Some(Color::Black), Some(Color::Black)));
        assert!(all.strong && all.underlined, "no 0 of a colour takes the rest back");
        let red = ink(&["31", "58;2;1;2;3", "58:5:9"]);
        assert_eq!(red, Ink { text: Some(Color::Red), ..Ink::default() }, "the colour of an underline is not shown");
    }

    #[test]
    fn switches_are_on_until_they_are_off() {
        let on = "1;2;3;4;7;9;31;44";
        let all = ink(&[on]);
        assert_eq!((all.text, all.back), (Some(Color::Blue), Some(Color::Red)), "they change places");
        assert!(all.strong && all.faint && all.slanted && all.underlined && all.struck);
        assert_eq!(ink(&[on, "22;23;24;27;29;39;49"]), Ink::default());
        for reset in ["", "0", ";", "0;", "00"] {
            assert_eq!(ink(&[on, reset]), Ink::default(), "{reset:?}");
        }
        assert_eq!(ink(&["7"]).back, Some(Color::Black), "text that had no colour is light on dark");
        assert!(ink(&["4:3"]).underlined && !ink(&["4", "4:0"]).underlined);
        assert_eq!(colors("93;101"), (Some(Color::Yellow), Some(Color::Red)));
        assert_eq!(colors("90"), (Some(Color::Grey), None));
    }

    #[test]
    fn what_makes_no_sense_changes_nothing() {
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
            assert_eq!(ink(&[sequence]), Ink::default(), "{sequence}");
        }
        assert_eq!(colors("999999;31"), (Some(Color::Red), None));
    }
}
