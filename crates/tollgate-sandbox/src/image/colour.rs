//! Colours in Oklab (<https://bottosson.github.io/posts/oklab/>), a perceptually uniform colour space.

use tiny_skia::Color;

/// An opaque colour: lightness from 0 (black) to 1 (white), and the axes a (green to red) and b (blue to yellow).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Colour {
    /// Lightness, 0 to 1.
    pub(super) l: f32,
    a: f32,
    b: f32,
}

impl Colour {
    /// From lightness (0 to 1), chroma (0 is grey, 0.3 very saturated) and hue in degrees. Chroma is reduced until the colour
    /// is in the sRGB gamut.
    pub(super) fn from_lch(l: f32, chroma: f32, hue: f32) -> Self {
        let (sin, cos) = hue.to_radians().sin_cos();
        let mut colour = Self {
            l,
            a: chroma * cos,
            b: chroma * sin,
        };
        for _ in 0..48 {
            if colour.linear().iter().all(|c| (-0.001..=1.001).contains(c)) {
                break;
            }
            colour.a *= 0.92;
            colour.b *= 0.92;
        }
        colour
    }

    /// Parses `#RRGGBB` or `RRGGBB`. `None` for anything else.
    pub(super) fn from_hex(text: &str) -> Option<Self> {
        let digits = text.trim().trim_start_matches('#');
        if digits.len() != 6 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let rgb = u32::from_str_radix(digits, 16).ok()?;
        let channel = |shift: u32| decode(((rgb >> shift) & 255) as f32 / 255.0);
        let (r, g, b) = (channel(16), channel(8), channel(0));
        let l = (0.412_221_46 * r + 0.536_332_55 * g + 0.051_445_995 * b).cbrt();
        let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
        let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
        Some(Self {
            l: 0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
            a: 1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
            b: 0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
        })
    }

    /// The saturation: 0 for grey.
    pub(super) fn chroma(self) -> f32 {
        self.a.hypot(self.b)
    }

    /// This colour mixed with `other`, whose `share` is 0 to 1.
    pub(super) fn mix(self, other: Self, share: f32) -> Self {
        let between = |from: f32, to: f32| from + (to - from) * share;
        Self {
            l: between(self.l, other.l),
            a: between(self.a, other.a),
            b: between(self.b, other.b),
        }
    }

    /// The same hue at another lightness, 0 to 1.
    pub(super) fn at(self, l: f32) -> Self {
        Self { l, ..self }
    }

    /// The opaque tiny-skia colour; components outside the sRGB gamut are clamped.
    pub(super) fn solid(self) -> Color {
        self.alpha(1.0)
    }

    /// The tiny-skia colour with `alpha` from 0 to 1.
    pub(super) fn alpha(self, alpha: f32) -> Color {
        let [r, g, b] = self.linear().map(|c| encode(c.clamp(0.0, 1.0)));
        Color::from_rgba(r, g, b, alpha.clamp(0.0, 1.0)).unwrap_or(Color::BLACK)
    }

    /// Linear sRGB; components outside 0 to 1 if the colour is outside the gamut.
    fn linear(self) -> [f32; 3] {
        let l = (self.l + 0.396_337_78 * self.a + 0.215_803_76 * self.b).powi(3);
        let m = (self.l - 0.105_561_346 * self.a - 0.063_854_17 * self.b).powi(3);
        let s = (self.l - 0.089_484_18 * self.a - 1.291_485_5 * self.b).powi(3);
        [
            4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
            -1.268_438 * l + 2.609_757_4 * m - 0.341_319_38 * s,
            -0.004_196_086_3 * l - 0.703_418_6 * m + 1.707_614_7 * s,
        ]
    }
}

/// Converts a gamma-encoded sRGB component to a linear one.
fn decode(c: f32) -> f32 {
    if c <= 0.040_45 {
        c / 12.92
    } else {
        ((c + 0.055) / 1.055).powf(2.4)
    }
}

/// Converts a linear sRGB component to a gamma-encoded one.
fn encode(c: f32) -> f32 {
    if c <= 0.003_130_8 {
        c * 12.92
    } else {
        1.055 * c.powf(1.0 / 2.4) - 0.055
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_colours_round_trip() {
        for (text, rgb) in [
            ("#000000", (0, 0, 0)),
            ("#FFFFFF", (255, 255, 255)),
            ("#C83C14", (200, 60, 20)),
            ("1e90ff", (30, 144, 255)),
        ] {
            let colour = Colour::from_hex(text).unwrap().solid().to_color_u8();
            assert_eq!((colour.red(), colour.green(), colour.blue()), rgb);
        }
        for text in ["", "#FFF", "#GGGGGG", "#ÄÄÄ", "#+12345"] {
            assert_eq!(Colour::from_hex(text), None, "{text}");
        }
    }

    #[test]
    fn chroma_outside_the_gamut_is_reduced() {
        let colour = Colour::from_lch(0.95, 0.4, 30.0);
        assert!(colour.chroma() < 0.2);
        assert!(colour.linear().iter().all(|c| (-0.01..=1.01).contains(c)));
    }
}
