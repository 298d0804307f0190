//! Checks whether an MP4 file is complete according to its own index (ISO/IEC 14496-12).

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::file_head::read_up_to;

/// Bytes of an index up to which it is read; the index of an hour of video is smaller.
const MAX_INDEX: u64 = 16 * 1_048_576;
/// How many levels deep the boxes with frame offsets are nested.
const MAX_DEPTH: u32 = 4;
/// Boxes that contain the boxes with the offsets of the frames.
const CONTAINERS: [&[u8; 4]; 4] = [b"trak", b"mdia", b"minf", b"stbl"];

/// Checks the boxes: they must fill the file exactly; the index (`moov` or `moof`) and the frames (`mdat`) must be among them, and no frame offset in
/// the index may be beyond the end of the file.
///
/// # Errors
/// The end of a sentence that begins with "the result".
pub(super) fn check_boxes(file: &mut File, bytes: u64) -> Result<(), String> {
    let unreadable = |e: io::Error| format!("cannot be read back: {e}");
    let cut_off = || Err("is cut off".to_owned());
    let (mut at, mut has_index, mut has_frames, mut last_frame) = (0, false, false, 0);
    while at < bytes {
        file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
        let mut head = [0; 16];
        let read = read_up_to(file, &mut head).map_err(unreadable)?;
        let Some((name, header, size)) = read_header(&head[..read], bytes - at) else {
            return cut_off();
        };
        has_index |= &name == b"moov" || &name == b"moof";
        has_frames |= &name == b"mdat";
        if &name == b"moov" && size <= MAX_INDEX {
            let mut index = Vec::new();
            file.seek(SeekFrom::Start(at + header))
                .map_err(unreadable)?;
            let content = size.saturating_sub(header);
            file.take(content)
                .read_to_end(&mut index)
                .map_err(unreadable)?;
            last_frame = last_frame.max(last_frame_offset(&index, MAX_DEPTH));
        }
        let Some(end) = at.checked_add(size) else {
            return cut_off();
        };
        at = end;
    }
    match (has_index, has_frames) {
        _ if at != bytes => cut_off(),
        (false, _) => Err("has no index of its frames".to_owned()),
        (true, false) => cut_off(),
        (true, true) if last_frame >= bytes => cut_off(),
        (true, true) => Ok(()),
    }
}

/// The name of a box, the length of its header, and the box's size including the header; `left` bytes of the file follow from its start. `None` if
/// the header is incomplete.
fn read_header(head: &[u8], left: u64) -> Option<([u8; 4], u64, u64)> {
    let name: [u8; 4] = head.get(4..8)?.try_into().ok()?;
    let size = u32::from_be_bytes(head.get(..4)?.try_into().ok()?);
    Some(match size {
        // The box extends to the end of the file.
        0 => (name, 8, left),
        1 => {
            let long = u64::from_be_bytes(head.get(8..16)?.try_into().ok()?);
            (name, 16, long.max(16))
        }
        size => (name, 8, u64::from(size).max(8)),
    })
}

/// The largest frame offset, from the start of the file, in the boxes in `boxes`; 0 if they have none. Containers are searched down to `depth`
/// levels.
fn last_frame_offset(mut boxes: &[u8], depth: u32) -> u64 {
    let mut last = 0;
    while let Some((name, header, size)) = read_header(boxes, boxes.len() as u64) {
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(boxes.len());
        let content = &boxes[(header as usize).min(size)..size];
        last = last.max(match &name {
            b"stco" => offsets::<4>(content),
            b"co64" => offsets::<8>(content),
            name if depth > 0 && CONTAINERS.contains(&name) => {
                last_frame_offset(content, depth - 1)
            }
            _ => 0,
        });
        boxes = &boxes[size..];
    }
    last
}

/// The largest offset in a box of offsets with `N` bytes each. The box begins with a version, flags and the number of offsets.
fn offsets<const N: usize>(content: &[u8]) -> u64 {
    let offsets = content.get(8..).unwrap_or_default().chunks_exact(N);
    let numbers = offsets.map(|offset| offset.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)));
    numbers.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_box(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(content.len() + 8).unwrap();
        [&size.to_be_bytes(), &name[..], content].concat()
    }

    /// An index with these frame offsets.
    fn index(offsets: &[u32]) -> Vec<u8> {
        let mut table = [0, offsets.len() as u32].map(u32::to_be_bytes).concat();
        table.extend(offsets.iter().flat_map(|offset| offset.to_be_bytes()));
        let mut inner = a_box(b"stco", &table);
        for name in [b"stbl", b"minf", b"mdia", b"trak", b"moov"] {
            inner = a_box(name, &inner);
        }
        inner
    }

    fn check(content: &[u8]) -> Result<(), String> {
        let path = std::env::temp_dir().join(tollgate_core::id::short_id("tollgate-mp4-"));
        std::fs::write(&path, content).unwrap();
        let checked = check_boxes(&mut File::open(&path).unwrap(), content.len() as u64);
        std::fs::remove_file(&path).unwrap();
        checked
    }

    #[test]
    fn a_file_that_is_cut_at_a_box_or_in_an_open_one_is_found() {
        let head = [a_box(b"ftyp", b"isom"), index(&[130, 180])].concat();
        let frames = [b'i'; 100];
        let complete = [head.clone(), a_box(b"mdat", &frames)].concat();
        assert_eq!(check(&complete), Ok(()));
        // The frames extend to the end of the file.
        let mut open = [head.clone(), a_box(b"mdat", &frames)].concat();
        open[head.len()..head.len() + 4].fill(0);
        assert_eq!(check(&open), Ok(()));
        let cut_off = Err("is cut off".to_owned());
        assert_eq!(check(&open[..170]), cut_off);
        assert_eq!(check(&complete[..170]), cut_off);
        assert_eq!(check(&head), cut_off, "no frames at all");
        assert_eq!(check(&head[..head.len() - 1]), cut_off);
        // The end of this box is beyond the largest number.
        let endless = [&1_u32.to_be_bytes()[..], b"mdat", &[0xff; 8]].concat();
        assert_eq!(check(&[head, endless].concat()), cut_off);
    }
}
