//! The documentation as a site (`/docs`), embedded when this crate is built.
//!
//! The build script (build/main.rs) renders the pages that docs/README.md lists and compresses them; its output is not committed.
//! Pages and assets are stored compressed only; [`decompress`] serves the rare client that does not accept gzip.

use std::io::{self, Read as _};

use flate2::read::GzDecoder;

/// Every page.
pub const PAGES: &[Page] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Every file that is served below `/docs/assets/`.
pub const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A page of the site.
#[derive(Debug)]
pub struct Page {
    /// The URL path below `/docs/`; empty for the first page.
    pub address: &'static str,
    /// The value of the header `ETag`, with its quotation marks.
    pub etag: &'static str,
    /// The page in HTML, compressed with gzip.
    pub gzip: &'static [u8],
}

/// A file whose content never changes under its name.
#[derive(Debug)]
pub struct Asset {
    /// The file name, `NAME.HASH.EXT`.
    pub name: &'static str,
    /// The value of the header `Content-Type`.
    pub content_type: &'static str,
    /// The file, compressed with gzip.
    pub gzip: &'static [u8],
}

/// The page at that address. `None` if there is none.
pub fn find_page(address: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.address == address)
}

/// The file of that name. `None` if there is none.
pub fn find_asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

/// The text of a page or asset.
///
/// # Errors
///
/// If `gzip` is not valid gzip data; the files of this crate always are.
pub fn decompress(gzip: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
