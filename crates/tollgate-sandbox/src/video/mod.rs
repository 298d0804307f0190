//! Encodes the sandbox's videos: MP4 files with H.264, from one image.
//!
//! The camera zooms slowly into the image while a progress bar fills. One frame per second is a complete (I) frame; the frames in between are P
//! frames that only move its macroblocks, which needs a thousandth of its bytes and time. The same spec always generates the same bytes.
//!
//! Why no crate is used: measured on 2026-11-22, a clip of 5 s, 1280x720, 24 frames per second, in CPU time on one core (release build, no nasm):
//! this encoder 0.44 s; openh264 0.9.9 2.9 s at its lowest complexity, and a minute to compile its C++; rav1e 0.8.1 (speed 10) 14.6 s for the first
//! second alone; less-avc 0.1.5 does not compress (1.4 MB per frame). See `mp4.rs` for muxers.

mod camera;
mod frame;
mod h264;
mod mp4;
mod progress_bar;

use std::io::{self, Write};
use std::ops::ControlFlow;

use camera::Camera;
use frame::Frame;
use h264::Format;
use mp4::{Mp4File, Samples};
use progress_bar::ProgressBar;

/// The longest side, in pixels.
pub const MAX_SIDE: u32 = 8192;
/// The longest clip, in seconds.
pub const MAX_SECONDS: u32 = 60;
/// The highest frame rate, in frames per second.
pub const MAX_FPS: u32 = 60;

/// Quantisation parameters from fine to coarse. The encoder uses the first with which the first frame is small enough: that is the case for drawings
/// at once, but not for noisy photographs.
const QUANTISERS: [i32; 4] = [20, 24, 28, 33];
/// A complete frame is small enough if it has at least this many pixels per byte.
const MIN_PIXELS_PER_BYTE: usize = 4;

/// What to encode.
#[derive(Debug, Clone, Copy)]
pub struct ClipSpec<'a> {
    /// The RGBA pixels of the first frame, `width` x `height`, row by row. Alpha is ignored.
    pub first: &'a [u8],
    /// The width in pixels, even, from 16 to [`MAX_SIDE`].
    pub width: u32,
    /// The height in pixels, even, from 16 to [`MAX_SIDE`].
    pub height: u32,
    /// Duration, from 1 to [`MAX_SECONDS`].
    pub seconds: u32,
    /// Frames per second, from 1 to [`MAX_FPS`].
    pub fps: u32,
    /// Selects the point that the camera zooms into.
    pub seed: u64,
    /// The title in the file's metadata. Empty for none.
    pub caption: &'a str,
}

/// The size and length of an encoded clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClipInfo {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of frames: `seconds` x `fps`.
    pub frames: u32,
}

/// Encodes a clip and writes it to `out` as an MP4 file with its index first. CPU-bound: not for an async thread.
///
/// `on_frame` is called before each frame with the number of encoded frames and of all frames. If it returns a break, the result is an error of kind
/// [`io::ErrorKind::Interrupted`]. Memory in addition to `first`: three bytes per pixel, and the encoded clip: about 0.1 byte per pixel and second,
/// 0.5 for pure noise.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] names the field of the spec that is out of range; other kinds are errors of `out`.
pub fn encode_clip(
    spec: &ClipSpec<'_>,
    out: &mut impl Write,
    mut on_frame: impl FnMut(u32, u32) -> ControlFlow<()>,
) -> io::Result<ClipInfo> {
    validate(spec)?;
    let mut encoder = ClipEncoder::new(spec);
    let mut samples = Samples::default();
    for frame in 0..encoder.frames {
        if on_frame(frame, encoder.frames).is_break() {
            let why = "the encoding was cancelled";
            return Err(io::Error::new(io::ErrorKind::Interrupted, why));
        }
        let key = frame.is_multiple_of(encoder.format.fps);
        let unit = if key {
            encoder.encode_key_frame(frame)
        } else {
            encoder.encode_motion_frame(frame)
        };
        samples.push(&unit, key);
    }
    let file = Mp4File {
        format: encoder.format,
        parameter_sets: &h264::parameter_sets(encoder.format),
        samples: &samples,
        title: spec.caption,
    };
    Ok(ClipInfo {
        bytes: file.write(out)?,
        frames: encoder.frames,
    })
}

fn validate(spec: &ClipSpec<'_>) -> io::Result<()> {
    let invalid = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    for (name, value, min, max) in [
        ("width", spec.width, 16, MAX_SIDE),
        ("height", spec.height, 16, MAX_SIDE),
        ("seconds", spec.seconds, 1, MAX_SECONDS),
        ("fps", spec.fps, 1, MAX_FPS),
    ] {
        if !(min..=max).contains(&value) {
            return invalid(format!("{name} of a video is {min} to {max}, not {value}"));
        }
    }
    let (width, height) = (spec.width, spec.height);
    if width % 2 + height % 2 > 0 {
        return invalid(format!(
            "the sides of a video are even, not {width}x{height}"
        ));
    }
    let expected = width as usize * height as usize * 4;
    if spec.first.len() != expected {
        let is = spec.first.len();
        return invalid(format!("the first frame has {is} bytes, not {expected}"));
    }
    Ok(())
}

/// The state of an encoding.
struct ClipEncoder {
    format: Format,
    frames: u32,
    camera: Camera,
    /// The first frame.
    source: Frame,
    bar: Option<ProgressBar>,
    /// The last complete frame.
    key_frame: Frame,
    /// The macroblock rows with the progress bar in P frames.
    footer: Option<Frame>,
    /// Quantisation parameter. `None` until the first frame has selected it.
    qp: Option<i32>,
}

impl ClipEncoder {
    fn new(spec: &ClipSpec<'_>) -> Self {
        let (width, height) = (spec.width as usize, spec.height as usize);
        let frames = spec.seconds * spec.fps;
        let source = Frame::from_rgba(spec.first, width, height);
        let bar = ProgressBar::new(&source, width, height);
        Self {
            format: Format {
                width: spec.width,
                height: spec.height,
                fps: spec.fps,
            },
            frames,
            camera: Camera::new(spec.width, spec.height, spec.seed, spec.seconds, frames),
            key_frame: Frame::new(source.columns, source.rows),
            footer: bar.as_ref().map(|bar| Frame::new(source.columns, bar.rows)),
            bar,
            source,
            qp: None,
        }
    }

    /// The share of the clip that has elapsed at `frame`: 0 at the first frame, 1 at the last.
    fn elapsed(&self, frame: u32) -> f64 {
        f64::from(frame) / f64::from(self.frames.max(2) - 1)
    }

    fn encode_key_frame(&mut self, frame: u32) -> Vec<u8> {
        let enough = self.key_frame.luma.data.len() / MIN_PIXELS_PER_BYTE;
        let (last, finer) = QUANTISERS.split_last().expect("there are some");
        if self.qp.is_none() {
            for &qp in finer {
                let unit = self.encode_key_frame_at(frame, qp);
                if unit.len() <= enough {
                    self.qp = Some(qp);
                    return unit;
                }
            }
        }
        let qp = *self.qp.get_or_insert(*last);
        self.encode_key_frame_at(frame, qp)
    }

    fn encode_key_frame_at(&mut self, frame: u32, qp: i32) -> Vec<u8> {
        self.camera.render(&self.source, frame, &mut self.key_frame);
        let elapsed = self.elapsed(frame);
        if let Some(bar) = &self.bar {
            let row = self.key_frame.rows - bar.rows;
            bar.paint(&mut self.key_frame, row, elapsed);
        }
        let parity = frame / self.format.fps % 2;
        h264::encode_key_frame(&mut self.key_frame, parity, qp)
    }

    fn encode_motion_frame(&mut self, frame: u32) -> Vec<u8> {
        let after = frame % self.format.fps;
        let elapsed = self.elapsed(frame);
        if let (Some(bar), Some(footer)) = (&self.bar, &mut self.footer) {
            bar.paint(footer, 0, elapsed);
        }
        let columns = self.source.columns;
        let rows = self.source.rows - self.bar.as_ref().map_or(0, |bar| bar.rows);
        let vectors = self.camera.vectors(frame - after, frame, columns, rows);
        let qp = self.qp.unwrap_or(QUANTISERS[0]);
        h264::encode_motion_frame(columns, vectors, self.footer.as_mut(), after, qp)
    }
}

// There is a complete frame every second.
const _: () = assert!(MAX_FPS <= h264::MAX_KEY_INTERVAL);
