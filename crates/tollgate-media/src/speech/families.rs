//! The registry of speech families.

use super::family::Family;
use super::native_v3;

/// Every speech family.
pub static FAMILIES: &[&Family] = &[&native_v3::FAMILY];
