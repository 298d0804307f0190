//! Strokes that the scenes share, over tiny-skia: fills, gradients, shapes, glows.

use tiny_skia::{
    Color, FillRule, GradientStop, LinearGradient, Paint, Path, PathBuilder, Pixmap, Point,
    RadialGradient, Rect, Shader, SpreadMode, Stroke, Transform,
};

use super::colour::Colour;
use super::wash::Ramp;

/// Beyond this ratio shapes stop shrinking with the shorter side, which bounds their number.
const SLIMMEST: f32 = 16.0;

/// A canvas with its measures as floats, all in pixels.
pub(super) struct Canvas {
    pub(super) pixmap: Pixmap,
    pub(super) width: f32,
    pub(super) height: f32,
    /// The shorter side, or a little more of a very slim canvas: what sizes are measured by, so
    /// that shapes keep their look in any ratio.
    pub(super) unit: f32,
}

impl Canvas {
    /// An empty canvas, or none where no memory is so large.
    pub(super) fn new(width: u32, height: u32) -> Option<Self> {
        let pixmap = Pixmap::new(width, height)?;
        let (width, height) = (width as f32, height as f32);
        Some(Self {
            pixmap,
            width,
            height,
            unit: width.min(height).max(width.max(height) / SLIMMEST),
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

    /// Fills a rectangle; an empty one is passed over.
    pub(super) fn rect(&mut self, x: f32, y: f32, width: f32, height: f32, shader: Shader<'_>) {
        if let Some(rect) = Rect::from_xywh(x, y, width, height) {
            let paint = paint(shader);
            self.pixmap
                .fill_rect(rect, &paint, Transform::identity(), None);
        }
    }

    /// Fills a disc.
    pub(super) fn disc(&mut self, x: f32, y: f32, radius: f32, shader: Shader<'_>) {
        if let Some(path) = PathBuilder::from_circle(x, y, radius) {
            self.fill(&path, shader);
        }
    }

    /// The background: three colours from top to bottom.
    pub(super) fn sky(&mut self, sky: [Colour; 3], horizon: f32) {
        let stops = [(0.0, sky[0], 1.0), (0.55, sky[1], 1.0), (1.0, sky[2], 1.0)];
        self.wash(&Ramp::new(0.0, horizon, &stops));
    }
}

fn paint(shader: Shader<'_>) -> Paint<'_> {
    Paint {
        shader,
        anti_alias: true,
        ..Paint::default()
    }
}

/// One colour.
pub(super) fn flat(colour: Colour) -> Shader<'static> {
    Shader::SolidColor(colour.solid())
}

/// One colour that lets through what is below; `alpha` from 0 to 1.
pub(super) fn veil(colour: Colour, alpha: f32) -> Shader<'static> {
    Shader::SolidColor(colour.alpha(alpha))
}

/// Colours from `top` to `bottom`, in pixels; stops at 0 to 1.
pub(super) fn vertical(top: f32, bottom: f32, stops: &[(f32, Color)]) -> Shader<'static> {
    linear((0.0, top), (0.0, bottom), stops)
}

/// Colours along a line; stops at 0 to 1.
pub(super) fn linear(from: (f32, f32), to: (f32, f32), stops: &[(f32, Color)]) -> Shader<'static> {
    LinearGradient::new(
        from.into(),
        to.into(),
        gradient(stops),
        SpreadMode::Pad,
        Transform::identity(),
    )
    .unwrap_or(Shader::SolidColor(stops[0].1))
}

/// Colours from a centre outwards; stops at 0 to 1.
pub(super) fn radial(x: f32, y: f32, radius: f32, stops: &[(f32, Color)]) -> Shader<'static> {
    let centre = Point::from_xy(x, y);
    RadialGradient::new(
        centre,
        0.0,
        centre,
        radius,
        gradient(stops),
        SpreadMode::Pad,
        Transform::identity(),
    )
    .unwrap_or(Shader::SolidColor(stops[0].1))
}

fn gradient(stops: &[(f32, Color)]) -> Vec<GradientStop> {
    stops
        .iter()
        .map(|&(at, colour)| GradientStop::new(at, colour))
        .collect()
}

/// A rectangle with round corners, or none where it is empty.
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
    // How far a Bézier's handles reach along a quarter circle.
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
