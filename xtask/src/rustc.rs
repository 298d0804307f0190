//! Reads properties of the installed compiler.

use std::process::Command;

use crate::process::output;

/// The target triple of this machine.
pub(crate) fn host_triple() -> Result<String, String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    Ok(host.to_owned())
}

/// The compiler's folder with its libraries and tools.
pub(crate) fn sysroot() -> Result<String, String> {
    let path = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(path.trim().to_owned())
}
