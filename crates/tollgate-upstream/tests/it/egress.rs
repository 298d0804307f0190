//! The HTTP client against servers on this machine, well-behaved and not.
