//! A wall of tiles with quarter circles, discs, leaves and triangles.

use tiny_skia::PathBuilder;

use crate::sandbox::picture::brush::{Canvas, flat};
use crate::sandbox::picture::colour::Colour;
use crate::sandbox::picture::palette::Palette;
use crate::sandbox::picture::seed::Dice;

/// Handle length of a quarter circle of radius 1.
const ARC: f32 = 0.552_3;

pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    let (width, height) = (canvas.width, canvas.height);
    let aim = canvas.unit / (4 + dice.below(3)) as f32;
    let columns = (width / aim).round().max(1.0);
    let rows = (height / aim).round().max(1.0);
    // Tiles are whole pixels wide, so that no seam shows between them.
    let edge = |index: f32, count: f32, length: f32| (index * length / count).round();
    for row in 0..rows as u32 {
        for column in 0..columns as u32 {
            let (x, y) = (
                edge(column as f32, columns, width),
                edge(row as f32, rows, height),
            );
            let tile = Tile {
                x,
                y,
                width: edge(column as f32 + 1.0, columns, width) - x,
                height: edge(row as f32 + 1.0, rows, height) - y,
            };
            tile.draw(canvas, palette, dice);
        }
    }
}

struct Tile {
    x: f32,
    y: f32,
    width: f32,
    height: f32,
}

impl Tile {
    fn draw(&self, canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
        let ground = tone(palette, dice);
        let mut figure = tone(palette, dice);
        // A figure must stand out from its ground.
        while (figure.l - ground.l).abs() < 0.12 {
            let aim = if ground.l > 0.55 {
                ground.l - 0.28
            } else {
                ground.l + 0.28
            };
            figure = figure.at(aim);
        }
        canvas.rect(self.x, self.y, self.width, self.height, flat(ground));
        let corner = dice.below(4);
        match dice.below(7) {
            0 | 1 => self.quarters(canvas, corner, &[(1.0, figure)]),
            2 => self.quarters(
                canvas,
                corner,
                &[(1.0, figure), (0.66, ground), (0.33, figure)],
            ),
            3 => self.leaf(canvas, corner, figure),
            4 => self.triangle(canvas, corner, figure),
            5 => self.disc(canvas, 0.36, figure),
            _ => {
                self.quarters(canvas, corner, &[(0.5, figure)]);
                self.quarters(canvas, (corner + 2) % 4, &[(0.5, figure)]);
            }
        }
    }

    /// A point of the tile: (0, 0) is `corner`, (1, 1) the one across.
    fn at(&self, corner: usize, across: f32, down: f32) -> (f32, f32) {
        let across = if corner.is_multiple_of(2) {
            across
        } else {
            1.0 - across
        };
        let down = if corner < 2 { down } else { 1.0 - down };
        (self.x + across * self.width, self.y + down * self.height)
    }

    /// Quarter discs around `corner`, the larger ones first.
    fn quarters(&self, canvas: &mut Canvas, corner: usize, discs: &[(f32, Colour)]) {
        for &(radius, colour) in discs {
            let mut path = PathBuilder::new();
            let k = radius * ARC;
            let [origin, start, one, two, end] = [
                (0.0, 0.0),
                (radius, 0.0),
                (radius, k),
                (k, radius),
                (0.0, radius),
            ]
            .map(|(across, down)| self.at(corner, across, down));
            path.move_to(origin.0, origin.1);
            path.line_to(start.0, start.1);
            path.cubic_to(one.0, one.1, two.0, two.1, end.0, end.1);
            path.close();
            if let Some(path) = path.finish() {
                canvas.fill(&path, flat(colour));
            }
        }
    }

    /// Two arcs from corner to corner.
    fn leaf(&self, canvas: &mut Canvas, corner: usize, colour: Colour) {
        let k = 1.0 - ARC;
        let [start, a, b, end, c, d] = [
            (0.0, 0.0),
            (ARC, 0.0),
            (1.0, k),
            (1.0, 1.0),
            (k, 1.0),
            (0.0, ARC),
        ]
        .map(|(across, down)| self.at(corner, across, down));
        let mut path = PathBuilder::new();
        path.move_to(start.0, start.1);
        path.cubic_to(a.0, a.1, b.0, b.1, end.0, end.1);
        path.cubic_to(c.0, c.1, d.0, d.1, start.0, start.1);
        path.close();
        if let Some(path) = path.finish() {
            canvas.fill(&path, flat(colour));
        }
    }

    fn triangle(&self, canvas: &mut Canvas, corner: usize, colour: Colour) {
        let [a, b, c] = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
            .map(|(across, down)| self.at(corner, across, down));
        let mut path = PathBuilder::new();
        path.move_to(a.0, a.1);
        path.line_to(b.0, b.1);
        path.line_to(c.0, c.1);
        path.close();
        if let Some(path) = path.finish() {
            canvas.fill(&path, flat(colour));
        }
    }

    fn disc(&self, canvas: &mut Canvas, share: f32, colour: Colour) {
        let (x, y) = self.at(0, 0.5, 0.5);
        canvas.disc(x, y, self.width.min(self.height) * share, flat(colour));
    }
}

fn tone(palette: &Palette, dice: &mut Dice) -> Colour {
    match dice.below(10) {
        0 => palette.accent,
        1 => palette.second,
        2 => palette.ink,
        3 => palette.sky[0],
        4 => palette.sky[1],
        5 => palette.sky[2],
        n => palette.layers[n - 5],
    }
}
