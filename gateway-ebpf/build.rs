//! Rebuilds the programs when the linker changes: cargo does not see that by itself.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PATH");
    let path = env::var_os("PATH").unwrap_or_default();
    let linker: Option<PathBuf> =
        env::split_paths(&path).map(|folder| folder.join("bpf-linker")).find(|file| file.is_file());
    if let Some(linker) = linker {
        println!("cargo:rerun-if-changed={}", linker.display());
    }
}
