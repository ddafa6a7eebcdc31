//! Compresses the kernel programs that the daemon embeds. They are committed; `cargo xtask ebpf` builds them.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

const VARIABLE: &str = "GATEWAY_BPF_OBJECT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let object = env::var_os(VARIABLE).map_or_else(default_object, PathBuf::from);
    println!("cargo:rerun-if-changed={}", object.display());
    let folder = env::var_os("OUT_DIR").expect("cargo sets it for build scripts");
    if let Err(error) = compress(&object, &Path::new(&folder).join("gateway.bpf.o.gz")) {
        let object = object.display();
        eprintln!("Cannot embed the kernel programs at {object}: {error}. `cargo xtask ebpf` builds them.");
        std::process::exit(1);
    }
}

fn compress(object: &Path, into: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(object)?)?;
    fs::write(into, encoder.finish()?)
}

/// Path at which `cargo xtask ebpf` stores the programs.
fn default_object() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
    let workspace = Path::new(&package).parent().expect("the package lies in a folder of the workspace");
    workspace.join("gateway-ebpf/object/gateway.bpf.o")
}
