//! The files of the web console for operators (`/console/`) and of the portal for users (`/portal/`), embedded when this crate is built.
//!
//! Both are one page whose modules render everything from the admin API or from `/v1/me`. There is no bundler: browsers run the modules in assets/ as
//! they are. `build.rs` puts a hash into their names, so that browsers may cache them without expiry, and compresses them.

/// The HTML page of console and portal, which loads all other files.
pub const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/index.html"));

/// The content security policy of [`PAGE`]: no inline code, no other origins. Media may also be data that the page itself created (previews of files
/// that are uploaded), and results that are stored under the gateway's public address.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; \
     object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Every file that is served below `/console/assets/`.
pub const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file whose content never changes under its name.
#[derive(Debug)]
pub struct Asset {
    /// The file name, `NAME.HASH.EXT`.
    pub name: &'static str,
    /// The value of the header `Content-Type`.
    pub content_type: &'static str,
    /// The file, uncompressed.
    pub bytes: &'static [u8],
    /// The file, compressed with gzip.
    pub gzip: &'static [u8],
}

/// The file of that name. `None` if there is none.
pub fn find_asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest sum of all compressed files, in bytes.
    const MAX_COMPRESSED: usize = 400 * 1000;

    #[test]
    fn all_files_compressed_are_small() {
        let total: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
        assert!(ASSETS.len() > 10 && total < MAX_COMPRESSED, "{total}");
    }

    #[test]
    fn the_page_and_the_modules_name_only_files_that_are_served() {
        let texts = ASSETS.iter().filter(|asset| asset.name.ends_with(".js"));
        let texts = texts.map(|asset| std::str::from_utf8(asset.bytes).expect("UTF-8"));
        let mut named = 0;
        for (text, begin) in texts
            .map(|text| (text, "\"./"))
            .chain([(PAGE, "\"/console/assets/")])
        {
            for rest in text.split(begin).skip(1) {
                let name = rest.split('"').next().expect("a part");
                assert!(find_asset(name).is_some(), "{name}");
                named += 1;
            }
        }
        assert!(named > ASSETS.len());
    }

    #[test]
    fn the_page_has_nothing_that_its_policy_forbids() {
        for forbidden in ["<style", "style=", "onclick", "http://", "https://"] {
            assert!(!PAGE.contains(forbidden), "{forbidden}");
        }
        assert!(
            !PAGE
                .replace("<script type=\"module\" src=", "")
                .contains("<script")
        );
    }
}
