//! Text and colors of SVG documents, for programs that open charts as files.

/// Escapes a text or the value of an attribute.
pub(crate) fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a color of a computed style in the form that every program knows (`oklch` is new); other values stay as they
/// are.
pub(crate) fn svg_color(css: &str) -> String {
    let numbers = |inner: &str| -> Vec<f64> {
        let parts = inner.trim_end_matches(')').split([' ', ',', '/']).filter(|part| !part.is_empty());
        parts.map(|part| part.trim_end_matches("deg").parse().unwrap_or(0.0)).collect()
    };
    let Some((name, inner)) = css.split_once('(') else { return css.to_owned() };
    match (name, &numbers(inner)[..]) {
        ("oklch", [lightness, chroma, hue, ..]) => {
            let (sine, cosine) = hue.to_radians().sin_cos();
            from_oklab(*lightness, chroma * cosine, chroma * sine)
        }
        ("oklab", [lightness, a, b, ..]) => from_oklab(*lightness, *a, *b),
        _ => css.to_owned(),
    }
}

/// The conversion of the CSS Color specification.
fn from_oklab(lightness: f64, green_red: f64, blue_yellow: f64) -> String {
    let cube = |number: f64| number * number * number;
    let long = cube(lightness + 0.396_337_777_4 * green_red + 0.215_803_757_3 * blue_yellow);
    let medium = cube(lightness - 0.105_561_345_8 * green_red - 0.063_854_172_8 * blue_yellow);
    let short = cube(lightness - 0.089_484_177_5 * green_red - 1.291_485_548 * blue_yellow);
    let linear = [
        4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701 * short,
    ];
    let channel = |value: f64| {
        let curved = if value <= 0.003_130_8 { value * 12.92 } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
        format!("{:.0}", (curved * 255.0).clamp(0.0, 255.0))
    };
    format!("rgb({})", linear.map(channel).join(", "))
}

#[cfg(test)]
mod tests {
    use super::{escape_xml, svg_color};

    #[test]
    fn texts_are_no_markup() {
        assert_eq!(escape_xml("<b>\"a&b\""), "&lt;b&gt;&quot;a&amp;b&quot;");
    }

    #[test]
    fn colors_are_those_of_the_specification() {
        assert_eq!(svg_color("oklch(1 0 0)"), "rgb(255, 255, 255)");
        assert_eq!(svg_color("oklch(0 0 0)"), "rgb(0, 0, 0)");
        assert_eq!(svg_color("oklch(0.627955 0.257683 29.2339)"), "rgb(255, 0, 0)");
        assert_eq!(svg_color("oklab(0.519752 -0.140302 0.107676)"), "rgb(0, 128, 0)");
        assert_eq!(
            svg_color("oklch(0.452 0.313 264.05deg / 0.5)"),
            "rgb(0, 0, 255)",
            "the opacity is its own attribute"
        );
        assert_eq!(["none", "rgb(1, 2, 3)"].map(svg_color), ["none", "rgb(1, 2, 3)"]);
    }
}
