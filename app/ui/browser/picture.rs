//! Charts as files: the drawing as it looks now, with its title and its legend.

use std::fmt::Write as _;

use js_sys::{Function, Reflect, encode_uri_component};
use leptos::prelude::{document, window};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{CssStyleDeclaration, Element, HtmlAnchorElement, HtmlCanvasElement, HtmlImageElement};

use super::PictureFormat;
use super::fragments::elements;
use crate::ui::svg::{escape_xml, svg_color};

/// The attributes that place shapes.
const SHAPES: [&str; 18] = [
    "d",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "cx",
    "cy",
    "r",
    "width",
    "height",
    "viewBox",
    "preserveAspectRatio",
    "text-anchor",
    "transform",
    "rx",
    "ry",
];
/// The properties that color and style them.
const STYLES: [&str; 9] = [
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "stroke-linejoin",
    "stroke-linecap",
    "opacity",
    "font-size",
    "font-family",
];
/// The height of a line of text.
const LINE: f64 = 20.0;
/// How many pixels of a picture are one of the page.
const PIXELS: f64 = 2.0;

/// Saves the chart whose button was clicked.
pub(crate) fn save_chart(event: &leptos::ev::MouseEvent, format: PictureFormat, name: &str) {
    let target = event.current_target().and_then(|target| target.dyn_into::<Element>().ok());
    let Some(figure) = target.and_then(|target| target.closest("figure").ok().flatten()) else { return };
    let drawn =
        elements(figure.query_selector_all("svg.chart")).find(|chart| chart.get_bounding_client_rect().width() > 0.0);
    let Some((text, size)) = drawn.and_then(|chart| picture(&figure, &chart)) else { return };
    let address = format!("data:image/svg+xml;charset=utf-8,{}", String::from(encode_uri_component(&text)));
    match format {
        PictureFormat::Svg => save(&address, &format!("{name}.svg")),
        PictureFormat::Png => {
            let name = format!("{name}.png");
            spawn_local(async move {
                if let Ok(address) = paint(&address, size).await {
                    save(&address, &name);
                }
            });
        }
    }
}

/// Returns an SVG document, and its size.
fn picture(figure: &Element, chart: &Element) -> Option<(String, (f64, f64))> {
    let view: Vec<f64> = chart.get_attribute("viewBox")?.split(' ').filter_map(|part| part.parse().ok()).collect();
    let [_, _, width, height] = view[..] else { return None };
    let text_style = style_of(chart)?;
    let family = escape_xml(&text_style.get_property_value("font-family").ok()?);
    let color = svg_color(&text_style.get_property_value("color").ok()?);
    let panel = figure.closest(".panel, dialog").ok().flatten().unwrap_or_else(|| figure.clone());
    let background = svg_color(&style_of(&panel)?.get_property_value("background-color").ok()?);
    let label = |x: f64, y: f64, size: f64, text: &str| {
        let text = escape_xml(text);
        format!(r#"<text x="{x}" y="{y}" font-size="{size}" font-family="{family}" fill="{color}">{text}</text>"#)
    };
    let title = figure.query_selector(".chart-title").ok()??.text_content().unwrap_or_default();
    let legend: Vec<Element> = elements(figure.query_selector_all(".chart-legend > li")).collect();
    let total = LINE + height + LINE * f64::from(u32::try_from(legend.len()).unwrap_or_default());
    let mut text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 {} {width} {total}">"#,
        -LINE
    );
    _ = write!(text, r#"<rect x="0" y="{}" width="{width}" height="{total}" fill="{background}"/>"#, -LINE);
    text += &label(4.0, -6.0, 13.0, &title);
    for child in elements(chart.query_selector_all(":scope > *")) {
        write_element(&mut text, &child)?;
    }
    let mut y = height + LINE / 2.0;
    for item in legend {
        _ = write!(text, r#"<g transform="translate(4 {y})">"#);
        if let Ok(Some(key)) = item.query_selector(".legend-key path") {
            write_element(&mut text, &key)?;
        }
        text += "</g>";
        let name = item.query_selector("bdi").ok().flatten().and_then(|name| name.text_content()).unwrap_or_default();
        text += &label(32.0, y + 4.0, 12.0, &name);
        y += LINE;
    }
    text += "</svg>";
    Some((text, (width, total)))
}

/// Writes an element as it looks; its style sheet is not part of a picture.
fn write_element(text: &mut String, element: &Element) -> Option<()> {
    let name = element.tag_name();
    let style = style_of(element)?;
    _ = write!(text, "<{name}");
    for attribute in SHAPES {
        if let Some(value) = element.get_attribute(attribute) {
            _ = write!(text, " {attribute}=\"{}\"", escape_xml(&value));
        }
    }
    for property in STYLES {
        let value = style.get_property_value(property).unwrap_or_default();
        if !value.is_empty() {
            _ = write!(text, " {property}=\"{}\"", escape_xml(&svg_color(&value)));
        }
    }
    text.push('>');
    if matches!(name.as_str(), "text" | "title") {
        text.push_str(&escape_xml(&element.text_content().unwrap_or_default()));
    } else {
        for child in elements(element.query_selector_all(":scope > *")) {
            write_element(text, &child)?;
        }
    }
    _ = write!(text, "</{name}>");
    Some(())
}

fn style_of(element: &Element) -> Option<CssStyleDeclaration> {
    window().get_computed_style(element).ok().flatten()
}

/// Paints a picture at this address, and returns the address of its pixels.
async fn paint(address: &str, (width, height): (f64, f64)) -> Result<String, JsValue> {
    let image = HtmlImageElement::new()?;
    image.set_src(address);
    JsFuture::from(image.decode()).await?;
    let canvas: HtmlCanvasElement = document().create_element("canvas")?.unchecked_into();
    canvas.set_width(pixels(width));
    canvas.set_height(pixels(height));
    let context = canvas.get_context("2d")?.ok_or(JsValue::NULL)?;
    let draw: Function = Reflect::get(&context, &"drawImage".into())?.dyn_into()?;
    let size = [0.0, 0.0, width * PIXELS, height * PIXELS].map(JsValue::from_f64);
    draw.apply(&context, &std::iter::once(image.into()).chain(size).collect::<js_sys::Array>())?;
    canvas.to_data_url()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size of a picture")]
fn pixels(length: f64) -> u32 {
    (length * PIXELS).round() as u32
}

/// Downloads what is at an address.
fn save(address: &str, name: &str) {
    if let Ok(link) = document().create_element("a").map(JsCast::unchecked_into::<HtmlAnchorElement>) {
        link.set_href(address);
        link.set_download(name);
        link.click();
    }
}
