//! The workshop: tidy, generated docs, soak, bench.
fn main() {}
