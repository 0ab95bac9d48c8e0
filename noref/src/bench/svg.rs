//! A drawing as SVG: rectangles, lines and words.

use std::fmt::{self, Write as _};

/// A drawing. Lengths are in pixels, from the upper left corner.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// How words stand to their place.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// They begin there.
    Start,
    /// They have their middle there.
    Middle,
    /// They end there.
    End,
}

impl Svg {
    /// An empty one.
    pub fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    /// A filled rectangle.
    pub fn rect(&mut self, (x, y): (f64, f64), width: f64, height: f64, colour: &str) {
        let _ = writeln!(self.body, r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#);
    }

    /// A thin upright line.
    pub fn upright(&mut self, x: f64, top: f64, bottom: f64, colour: &str) {
        let _ = writeln!(self.body, r#"<line x1="{x:.1}" y1="{top:.1}" x2="{x:.1}" y2="{bottom:.1}" stroke="{colour}" stroke-width="1"/>"#);
    }

    /// Words on a line, in this size.
    pub fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, colour: &str, words: impl fmt::Display) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let words = escape(&words.to_string());
        let _ =
            writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{words}</text>"#);
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Svg { width, height, body } = self;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif">"#
        )?;
        writeln!(f, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##)?;
        writeln!(f, "{body}</svg>")
    }
}

/// Words as XML has them. What XML cannot say is left out.
fn escape(words: &str) -> String {
    let mut escaped = String::new();
    for c in words.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => (),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_be_taken_for_marks() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text((1.0, 2.0), 12.0, Anchor::End, "#000", "a<b & \"c\"\u{7}>");
        assert!(svg.to_string().contains(r##"text-anchor="end" fill="#000">a&lt;b &amp; &quot;c&quot;&gt;</text>"##), "{svg}");
    }
}
