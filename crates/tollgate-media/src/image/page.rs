//! placeholder
use super::family::Family;
/// x
pub fn page(f: &Family) -> String {
    f.title.to_owned()
}
