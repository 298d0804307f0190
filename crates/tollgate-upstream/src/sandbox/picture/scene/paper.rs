//! Sheets of cut paper over one another, each with its soft shadow.

use super::waves::Line;
use crate::sandbox::picture::brush::{Canvas, flat, veil};
use crate::sandbox::picture::palette::Palette;
use crate::sandbox::picture::seed::Dice;
use crate::sandbox::picture::wash::{Ramp, Shadow};

const SHEETS: usize = 7;

pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    let (width, height, unit) = (canvas.width, canvas.height, canvas.unit);
    canvas.sky(palette.sky, height * 0.7);
    let (x, y) = (
        width * dice.between(0.3, 0.7),
        height * dice.between(0.2, 0.34),
    );
    let radius = unit * dice.between(0.12, 0.19);
    canvas.glow(x, y, radius * 4.0, palette.accent, 0.45);
    canvas.disc(x, y, radius, flat(palette.accent));
    canvas.disc(x, y, radius * 0.72, veil(palette.ink, 0.22));
    let slope = dice.between(-0.10, 0.10);
    for sheet in 0..SHEETS {
        let depth = sheet as f32 / (SHEETS - 1) as f32;
        let waves = dice.between(0.35, 0.95);
        let line = Line::new(dice, unit, waves, 2, 0.0);
        let base = height * (0.30 + 0.58 * depth);
        let swing = unit * dice.between(0.06, 0.12);
        let edge = |x: f32| base + slope * (x - width / 2.0) * unit / width - swing * line.at(x);
        // One sheet among them has the second accent's colour.
        let colour = if sheet == 2 {
            palette.second.mix(palette.layer(depth), 0.35)
        } else {
            palette.layer(depth)
        };
        let shadow = Shadow {
            colour: palette.shade,
            reach: unit * 0.030,
            strength: 0.34,
        };
        let lit = colour.mix(palette.sky[2], 0.16);
        let top = base - swing;
        let ramp = Ramp::between(top, top + unit * 0.5, lit, colour);
        canvas.land(edge, &ramp, Some(&shadow));
    }
}
