//! Compiler flags that keep folders of this machine out of what it builds.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::paths;

/// Returns the flags as a list in TOML, for a value of cargo's configuration. `sysroot` is the folder of the compiler.
pub(crate) fn flags(sysroot: &Path) -> String {
    let home = env::var_os("CARGO_HOME").map_or_else(
        || Path::new(env::var_os("HOME").as_deref().unwrap_or(OsStr::new(""))).join(".cargo"),
        PathBuf::from,
    );
    let root = paths::root();
    // If several prefixes match, the compiler uses the last.
    let folders = [(root.as_path(), "/gateway"), (home.as_path(), "/cargo"), (sysroot, "/rust")];
    let flags = folders
        .map(|(folder, name)| format!("{:?}", format!("--remap-path-prefix={}={name}", folder.display())));
    format!("[{}]", flags.join(", "))
}
