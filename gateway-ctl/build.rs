//! Finds the kernel programs that the daemon embeds. They are committed; `cargo xtask ebpf` builds them.

use std::{
    env,
    path::{Path, PathBuf},
};

const VARIABLE: &str = "GATEWAY_BPF_OBJECT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let object = env::var_os(VARIABLE).map_or_else(default_object, PathBuf::from);
    println!("cargo:rerun-if-changed={}", object.display());
    if !object.is_file() {
        eprintln!("There are no kernel programs at {}: run `cargo xtask ebpf`.", object.display());
        std::process::exit(1);
    }
    println!("cargo:rustc-env={VARIABLE}={}", object.display());
}

/// Path at which `cargo xtask ebpf` stores the programs.
fn default_object() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
    let workspace = Path::new(&package).parent().expect("the package lies in a folder of the workspace");
    workspace.join("gateway-ebpf/object/gateway.bpf.o")
}
