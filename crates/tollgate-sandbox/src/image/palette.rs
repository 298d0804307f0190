//! The colours of one image: random, or taken from the request's `color_palette`.

use serde_json::{Map, Value};

use super::colour::Colour;
use super::rng::Rng;

/// Colours by use.
#[derive(Debug, Clone)]
pub(super) struct Palette {
    /// Background: top, middle, horizon.
    pub(super) sky: [Colour; 3],
    /// Shapes in front of it, from far to near.
    pub(super) layers: [Colour; 5],
    /// The sun.
    pub(super) accent: Colour,
    /// A second accent of another hue.
    pub(super) second: Colour,
    /// Dark, behind text.
    pub(super) shade: Colour,
    /// Light, for text.
    pub(super) ink: Colour,
}

/// Lightness and chroma of a time of day. The hues are random.
struct Mood {
    sky: [(f32, f32); 3],
    /// Lightness of the farthest and the nearest layer.
    layers: (f32, f32),
    layer_chroma: f32,
    accent: (f32, f32),
}

const MOODS: [Mood; 4] = [
    // Dawn.
    Mood {
        sky: [(0.66, 0.09), (0.82, 0.08), (0.94, 0.05)],
        layers: (0.76, 0.30),
        layer_chroma: 0.075,
        accent: (0.95, 0.09),
    },
    // Day.
    Mood {
        sky: [(0.70, 0.11), (0.83, 0.07), (0.95, 0.03)],
        layers: (0.74, 0.34),
        layer_chroma: 0.10,
        accent: (0.93, 0.13),
    },
    // Dusk.
    Mood {
        sky: [(0.33, 0.10), (0.56, 0.15), (0.83, 0.12)],
        layers: (0.54, 0.17),
        layer_chroma: 0.09,
        accent: (0.90, 0.13),
    },
    // Night.
    Mood {
        sky: [(0.17, 0.05), (0.28, 0.09), (0.50, 0.11)],
        layers: (0.38, 0.11),
        layer_chroma: 0.06,
        accent: (0.95, 0.05),
    },
];

impl Palette {
    /// The colours of `color_palette` in `extra` if it has at least two valid ones, else random ones.
    pub(super) fn choose(extra: &Map<String, Value>, rng: &mut Rng) -> Self {
        // Generated in either case, so that a `color_palette` does not change the shapes.
        let random = Self::random(rng);
        match requested_colours(extra) {
            colours if colours.len() >= 2 => Self::from_colours(colours),
            _ => random,
        }
    }

    fn random(rng: &mut Rng) -> Self {
        let mood = &MOODS[rng.below(MOODS.len())];
        let hue = rng.between(0.0, 360.0);
        let side = if rng.chance(0.5) { 1.0 } else { -1.0 };
        // Adjacent hues across the sky, a nearly complementary one for the second accent.
        let spread = side * rng.between(28.0, 52.0);
        let sky = [0, 1, 2].map(|i| {
            let (l, chroma) = mood.sky[i];
            Colour::from_lch(l, chroma, hue + spread * i as f32)
        });
        let ground = hue + side * rng.between(-25.0, 20.0);
        let layers = [0, 1, 2, 3, 4].map(|i| {
            let near = i as f32 / 4.0;
            let (far_l, near_l) = mood.layers;
            Colour::from_lch(far_l + (near_l - far_l) * near, mood.layer_chroma, ground)
                .mix(sky[2], 0.35 * (1.0 - near))
        });
        let (l, chroma) = mood.accent;
        Self {
            sky,
            layers,
            // Halfway to yellow.
            accent: Colour::from_lch(l, chroma, hue + spread * 2.2)
                .mix(Colour::from_lch(l, chroma, 82.0), 0.5),
            second: Colour::from_lch(0.70, 0.15, hue + 180.0 + spread),
            shade: Colour::from_lch(0.15, 0.04, ground),
            ink: Colour::from_lch(0.975, 0.012, hue + spread * 2.0),
        }
    }

    /// A palette of `colours` (at least one), assigned to uses by lightness.
    fn from_colours(mut colours: Vec<Colour>) -> Self {
        colours.sort_by(|a, b| a.l.total_cmp(&b.l));
        let last = colours.len() - 1;
        // 0 selects the darkest, 1 the lightest.
        let pick = |lightness: f32| colours[(lightness * last as f32).round() as usize];
        let mut by_chroma = colours.clone();
        by_chroma.sort_by(|a, b| b.chroma().total_cmp(&a.chroma()));
        Self {
            sky: [pick(0.55), pick(0.8), pick(1.0)],
            layers: [pick(0.75), pick(0.5), pick(0.3), pick(0.15), pick(0.0)],
            accent: by_chroma[0],
            second: by_chroma[1.min(last)],
            // Keeps text legible with any colours.
            shade: pick(0.0).at(pick(0.0).l.min(0.2)),
            ink: pick(1.0).at(pick(1.0).l.max(0.95)),
        }
    }

    /// The layer colour at `depth` from 0 (far) to 1 (near).
    pub(super) fn layer(&self, depth: f32) -> Colour {
        let position = depth.clamp(0.0, 1.0) * 4.0;
        let below = (position as usize).min(3);
        self.layers[below].mix(self.layers[below + 1], position - below as f32)
    }
}

/// The valid colours of `color_palette`: `[{"hex": "#RRGGBB", "ratio": …}]`. Ratios are ignored.
fn requested_colours(extra: &Map<String, Value>) -> Vec<Colour> {
    let Some(Value::Array(items)) = extra.get("color_palette") else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| Colour::from_hex(item.get("hex")?.as_str()?))
        .collect()
}
