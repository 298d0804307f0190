//! Makes the sandbox's films: real MP4 files from one picture, in a moment and without a video library.
//!
//! A film is its first picture, which a camera slowly comes nearer to, over a bar that fills. Once a
//! second a picture is coded whole; those between are that one with its blocks moved, which costs a
//! thousandth of the bytes and of the work. The same order makes the same bytes.

mod bar;
mod camera;
mod frame;
mod h264;
mod mp4;

use std::io::{self, Write};
use std::ops::ControlFlow;

use bar::Bar;
use camera::Camera;
use frame::Frame;
use h264::Format;
use mp4::{Film, Samples};

/// Longest side of a film in pixels.
pub const MAX_SIDE: u32 = 8192;
/// Longest film in seconds.
pub const MAX_SECONDS: u32 = 60;
/// Most pictures a second.
pub const MAX_FPS: u32 = 60;

/// Quantisation parameters from fine to coarse. The first is used that makes the first picture small
/// enough: art does, photographs of leaves do not.
const QUALITIES: [i32; 4] = [20, 24, 28, 33];
/// Pixels of a whole picture that may cost a byte.
const PIXELS_A_BYTE: usize = 4;

/// What to film.
#[derive(Debug, Clone, Copy)]
pub struct FilmOrder<'a> {
    /// The first picture, of exactly `width` x `height`: red, green, blue and a fourth byte that does
    /// not count for each pixel, row by row.
    pub first: &'a [u8],
    /// Pixels, even, from 16 to [`MAX_SIDE`].
    pub width: u32,
    /// Pixels, even, from 16 to [`MAX_SIDE`].
    pub height: u32,
    /// Length, from 1 to [`MAX_SECONDS`].
    pub seconds: u32,
    /// Pictures a second, from 1 to [`MAX_FPS`].
    pub fps: u32,
    /// Chooses where the camera goes.
    pub seed: u64,
    /// The film's title in the file, which players show. Empty for none.
    pub caption: &'a str,
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmFacts {
    /// Size of the file.
    pub bytes: u64,
    /// Pictures in the film: it lasts this many times one over the order's `fps`.
    pub frames: u32,
}

/// Makes the film and writes it to `out` as an MP4 file whose index comes first. Takes long: not for an
/// async thread.
///
/// `watch` is called before each picture with the number of those done and of all; `Break` stops the
/// work with an error of kind [`io::ErrorKind::Interrupted`]. Memory: three bytes a pixel beside `first`,
/// and the coded film: about a tenth of a byte a pixel for each second, half a byte of pure noise.
///
/// # Errors
/// Kind [`io::ErrorKind::InvalidInput`] says what is wrong with the order; others are those of `out`.
pub fn make(
    order: &FilmOrder<'_>,
    out: &mut impl Write,
    mut watch: impl FnMut(u32, u32) -> ControlFlow<()>,
) -> io::Result<FilmFacts> {
    check(order)?;
    let mut set = Set::of(order);
    let mut samples = Samples::default();
    for frame in 0..set.frames {
        if watch(frame, set.frames).is_break() {
            let why = "the film was stopped before its end";
            return Err(io::Error::new(io::ErrorKind::Interrupted, why));
        }
        let key = frame.is_multiple_of(set.format.fps);
        let unit = if key {
            set.key_picture(frame)
        } else {
            set.moved_picture(frame)
        };
        samples.push(&unit, key);
    }
    let film = Film {
        format: set.format,
        parameter_sets: &h264::parameter_sets(set.format),
        samples: &samples,
        title: order.caption,
    };
    Ok(FilmFacts {
        bytes: film.write(out)?,
        frames: set.frames,
    })
}

fn check(order: &FilmOrder<'_>) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    for (name, value, least, most) in [
        ("width", order.width, 16, MAX_SIDE),
        ("height", order.height, 16, MAX_SIDE),
        ("seconds", order.seconds, 1, MAX_SECONDS),
        ("fps", order.fps, 1, MAX_FPS),
    ] {
        if !(least..=most).contains(&value) {
            return refuse(format!(
                "{name} of a film is {least} to {most}, not {value}"
            ));
        }
    }
    let (width, height) = (order.width, order.height);
    if width % 2 + height % 2 > 0 {
        return refuse(format!("a film's sides are even, not {width}x{height}"));
    }
    let expected = width as usize * height as usize * 4;
    if order.first.len() != expected {
        let is = order.first.len();
        return refuse(format!("the first picture has {is} bytes, not {expected}"));
    }
    Ok(())
}

/// A film that is being made.
struct Set {
    format: Format,
    frames: u32,
    camera: Camera,
    /// The first picture.
    scene: Frame,
    bar: Option<Bar>,
    /// The last key picture.
    shot: Frame,
    /// What the bar is drawn on for pictures between.
    foot: Option<Frame>,
    /// Quantisation parameter; none until the first picture has chosen it.
    qp: Option<i32>,
}

impl Set {
    fn of(order: &FilmOrder<'_>) -> Self {
        let (width, height) = (order.width as usize, order.height as usize);
        let frames = order.seconds * order.fps;
        let scene = Frame::of_rgba(order.first, width, height);
        let bar = Bar::new(&scene, width, height);
        Self {
            format: Format {
                width: order.width,
                height: order.height,
                fps: order.fps,
            },
            frames,
            camera: Camera::new(order.width, order.height, order.seed, order.seconds, frames),
            shot: Frame::new(scene.columns, scene.rows),
            foot: bar.as_ref().map(|bar| Frame::new(scene.columns, bar.rows)),
            bar,
            scene,
            qp: None,
        }
    }

    /// The share of the film that has passed when `frame` is shown: none of it at the first picture, all
    /// at the last.
    fn passed(&self, frame: u32) -> f64 {
        f64::from(frame) / f64::from(self.frames.max(2) - 1)
    }

    fn key_picture(&mut self, frame: u32) -> Vec<u8> {
        let enough = self.shot.luma.data.len() / PIXELS_A_BYTE;
        let (last, finer) = QUALITIES.split_last().expect("there are some");
        if self.qp.is_none() {
            for &qp in finer {
                let unit = self.key_picture_of(frame, qp);
                if unit.len() <= enough {
                    self.qp = Some(qp);
                    return unit;
                }
            }
        }
        let qp = *self.qp.get_or_insert(*last);
        self.key_picture_of(frame, qp)
    }

    fn key_picture_of(&mut self, frame: u32, qp: i32) -> Vec<u8> {
        self.camera.shoot(&self.scene, frame, &mut self.shot);
        let passed = self.passed(frame);
        if let Some(bar) = &self.bar {
            let row = self.shot.rows - bar.rows;
            bar.paint(&mut self.shot, row, passed);
        }
        let parity = frame / self.format.fps % 2;
        h264::key_picture(&mut self.shot, parity, qp)
    }

    fn moved_picture(&mut self, frame: u32) -> Vec<u8> {
        let after = frame % self.format.fps;
        let passed = self.passed(frame);
        if let (Some(bar), Some(foot)) = (&self.bar, &mut self.foot) {
            bar.paint(foot, 0, passed);
        }
        let columns = self.scene.columns;
        let rows = self.scene.rows - self.bar.as_ref().map_or(0, |bar| bar.rows);
        let vectors = self.camera.vectors(frame - after, frame, columns, rows);
        let qp = self.qp.unwrap_or(QUALITIES[0]);
        h264::moved_picture(columns, vectors, self.foot.as_mut(), after, qp)
    }
}

// Key pictures come once a second.
const _: () = assert!(MAX_FPS <= h264::MAX_GROUP);
