//! The sandbox and the HTTP client through their public faces.

mod egress;
mod references;
mod sandbox;
mod studio;
mod tls;
