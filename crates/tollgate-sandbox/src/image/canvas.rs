//! A canvas over tiny-skia: shapes filled and stroked in the colours of [`super::colour`].

use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Shader, Stroke, Transform};

use super::colour::Colour;

/// From this aspect ratio on, `unit` no longer shrinks with the shorter side, which bounds the number of shapes.
const MAX_UNIT_RATIO: f32 = 16.0;

/// A pixmap and its measures in pixels, as floats.
pub(super) struct Canvas {
    pub(super) pixmap: Pixmap,
    pub(super) width: f32,
    pub(super) height: f32,
    /// The unit for sizes of shapes: the shorter side, or a 16th of the longer one if that is more.
    pub(super) unit: f32,
}

impl Canvas {
    /// A transparent canvas. `None` if a side is 0 or the pixels do not fit into memory.
    pub(super) fn new(width: u32, height: u32) -> Option<Self> {
        let pixmap = Pixmap::new(width, height)?;
        let (width, height) = (width as f32, height as f32);
        Some(Self {
            pixmap,
            width,
            height,
            unit: width.min(height).max(width.max(height) / MAX_UNIT_RATIO),
        })
    }

    /// Fills `path`.
    pub(super) fn fill(&mut self, path: &Path, shader: Shader<'_>) {
        let paint = paint(shader);
        self.pixmap
            .fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
    }

    /// Draws along `path`, `width` pixels wide, with round ends.
    pub(super) fn stroke(&mut self, path: &Path, width: f32, colour: Color) {
        let stroke = Stroke {
            width,
            line_cap: tiny_skia::LineCap::Round,
            line_join: tiny_skia::LineJoin::Round,
            ..Stroke::default()
        };
        let paint = paint(Shader::SolidColor(colour));
        self.pixmap
            .stroke_path(path, &paint, &stroke, Transform::identity(), None);
    }

    /// Fills a disc.
    pub(super) fn disc(&mut self, x: f32, y: f32, radius: f32, shader: Shader<'_>) {
        if let Some(path) = PathBuilder::from_circle(x, y, radius) {
            self.fill(&path, shader);
        }
    }
}

fn paint(shader: Shader<'_>) -> Paint<'_> {
    Paint {
        shader,
        anti_alias: true,
        ..Paint::default()
    }
}

/// A shader of one opaque colour.
pub(super) fn opaque(colour: Colour) -> Shader<'static> {
    Shader::SolidColor(colour.solid())
}

/// A shader of one colour with `alpha` from 0 (transparent) to 1.
pub(super) fn translucent(colour: Colour, alpha: f32) -> Shader<'static> {
    Shader::SolidColor(colour.alpha(alpha))
}

/// A rectangle with round corners. `None` if it is empty.
pub(super) fn rounded(x: f32, y: f32, width: f32, height: f32, radius: f32) -> Option<Path> {
    if width <= 0.0 || height <= 0.0 {
        return None;
    }
    let mut path = PathBuilder::new();
    push_rounded(&mut path, x, y, width, height, radius);
    path.finish()
}

/// Adds a rectangle with round corners to `path`.
pub(super) fn push_rounded(
    path: &mut PathBuilder,
    x: f32,
    y: f32,
    width: f32,
    height: f32,
    radius: f32,
) {
    let r = radius.clamp(0.0, width.min(height).max(0.0) / 2.0);
    // Distance of the control points of the cubic that approximates a quarter circle, from the corner.
    let k = r * 0.447_7;
    let (right, bottom) = (x + width, y + height);
    path.move_to(x + r, y);
    path.line_to(right - r, y);
    path.cubic_to(right - k, y, right, y + k, right, y + r);
    path.line_to(right, bottom - r);
    path.cubic_to(right, bottom - k, right - k, bottom, right - r, bottom);
    path.line_to(x + r, bottom);
    path.cubic_to(x + k, bottom, x, bottom - k, x, bottom - r);
    path.line_to(x, y + r);
    path.cubic_to(x, y + k, x + k, y, x + r, y);
    path.close();
}
