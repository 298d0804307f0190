//! The colours of one picture: a harmony drawn from the dice, or the client's own `color_palette`.

use serde_json::{Map, Value};

use super::colour::Colour;
use super::seed::Dice;

/// Colours by what they are for.
#[derive(Debug, Clone)]
pub(super) struct Palette {
    /// Background: top, middle, horizon.
    pub(super) sky: [Colour; 3],
    /// Shapes in front of it, from far to near.
    pub(super) layers: [Colour; 5],
    /// What catches the eye: a sun.
    pub(super) accent: Colour,
    /// A second one, of another hue.
    pub(super) second: Colour,
    /// Dark, behind the words.
    pub(super) shade: Colour,
    /// Light, for the words.
    pub(super) ink: Colour,
}

/// Lightness and chroma of a time of day; hues come from the dice.
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
    /// The client's colours where `extra` has a usable `color_palette`, else a harmony.
    pub(super) fn choose(extra: &Map<String, Value>, dice: &mut Dice) -> Self {
        // The dice roll in either case, so that colours do not change the shapes.
        let harmony = Self::harmony(dice);
        match given(extra) {
            colours if colours.len() >= 2 => Self::of(colours),
            _ => harmony,
        }
    }

    fn harmony(dice: &mut Dice) -> Self {
        let mood = &MOODS[dice.below(MOODS.len())];
        let hue = dice.between(0.0, 360.0);
        let side = if dice.chance(0.5) { 1.0 } else { -1.0 };
        // Neighbouring hues across the sky, a nearly opposite one for the second accent.
        let spread = side * dice.between(28.0, 52.0);
        let sky = [0, 1, 2].map(|i| {
            let (l, chroma) = mood.sky[i];
            Colour::lch(l, chroma, hue + spread * i as f32)
        });
        let ground = hue + side * dice.between(-25.0, 20.0);
        let layers = [0, 1, 2, 3, 4].map(|i| {
            let near = i as f32 / 4.0;
            let (far_l, near_l) = mood.layers;
            Colour::lch(far_l + (near_l - far_l) * near, mood.layer_chroma, ground)
                .mix(sky[2], 0.35 * (1.0 - near))
        });
        let (l, chroma) = mood.accent;
        Self {
            sky,
            layers,
            // Half way to the yellow of a sun.
            accent: Colour::lch(l, chroma, hue + spread * 2.2)
                .mix(Colour::lch(l, chroma, 82.0), 0.5),
            second: Colour::lch(0.70, 0.15, hue + 180.0 + spread),
            shade: Colour::lch(0.15, 0.04, ground),
            ink: Colour::lch(0.975, 0.012, hue + spread * 2.0),
        }
    }

    /// A palette of nothing but `colours` (at least one), sorted by their lightness into roles.
    fn of(mut colours: Vec<Colour>) -> Self {
        colours.sort_by(|a, b| a.l.total_cmp(&b.l));
        let last = colours.len() - 1;
        // 0 the darkest, 1 the lightest; always one of the client's own colours.
        let pick = |height: f32| colours[(height * last as f32).round() as usize];
        let mut vivid = colours.clone();
        vivid.sort_by(|a, b| b.chroma().total_cmp(&a.chroma()));
        Self {
            sky: [pick(0.55), pick(0.8), pick(1.0)],
            layers: [pick(0.75), pick(0.5), pick(0.3), pick(0.15), pick(0.0)],
            accent: vivid[0],
            second: vivid[1.min(last)],
            // Words must stay legible whatever the client's colours are.
            shade: pick(0.0).at(pick(0.0).l.min(0.2)),
            ink: pick(1.0).at(pick(1.0).l.max(0.95)),
        }
    }

    /// The layer colour at `depth` from 0 (far) to 1 (near).
    pub(super) fn layer(&self, depth: f32) -> Colour {
        let place = depth.clamp(0.0, 1.0) * 4.0;
        let below = (place as usize).min(3);
        self.layers[below].mix(self.layers[below + 1], place - below as f32)
    }
}

/// The colours of `color_palette`: `[{hex, ratio}]`. Family rules have checked it; what is
/// unreadable all the same is passed over. The ratios only order colours of equal lightness.
fn given(extra: &Map<String, Value>) -> Vec<Colour> {
    let Some(Value::Array(items)) = extra.get("color_palette") else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| Colour::hex(item.get("hex")?.as_str()?))
        .collect()
}
