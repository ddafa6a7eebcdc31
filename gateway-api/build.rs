//! Embeds the dashboard: a table of the files in `ui/dist`, compressed where that is smaller. `cargo xtask ui` builds
//! them. Without them the daemon has no dashboard, and says so in its place. Compresses the document of the API as well.

use std::{
    env,
    error::Error,
    ffi::OsStr,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Folder of the built dashboard. An empty value embeds none.
const VARIABLE: &str = "GATEWAY_UI_DIST";

/// The document of the API, which the package holds.
const DOCUMENT: &str = "openapi.json";
const COMPRESSED_DOCUMENT: &str = "openapi.json.gz";

/// The result, beside the contents that it includes.
const TABLE: &str = "dashboard.rs";

/// Media types by extension, and whether compression may make a file smaller.
const MEDIA: [(&str, &str, bool); 10] = [
    ("css", "text/css; charset=utf-8", true),
    ("html", "text/html; charset=utf-8", true),
    ("ico", "image/vnd.microsoft.icon", true),
    ("js", "text/javascript; charset=utf-8", true),
    ("json", "application/json", true),
    ("png", "image/png", false),
    ("svg", "image/svg+xml", true),
    ("txt", "text/plain; charset=utf-8", true),
    ("webmanifest", "application/manifest+json", true),
    ("woff2", "font/woff2", false),
];

fn main() {
    if let Err(error) = run() {
        eprintln!("The dashboard cannot be embedded: {error}");
        std::process::exit(1);
    }
}

/// Asks the linker, where it is LLD, for compact relocations and for one copy of functions with equal code.
fn make_small() {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|seen| seen == value);
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}

fn run() -> Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    make_small();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder for the result")?);
    compress_document(&out)?;
    let mut files = Vec::new();
    let dist = dist()?;
    if let Some(dist) = &dist {
        collect(dist, &mut files)?;
        files.sort();
    }
    let table = match &dist {
        Some(dist) => table(dist, &files, &out)?,
        None => "&[]".to_owned(),
    };
    remove_unused(&out, &table)?;
    Ok(fs::write(out.join(TABLE), table)?)
}

/// Returns the folder of the built dashboard, if there is one.
fn dist() -> Result<Option<PathBuf>> {
    if let Some(given) = env::var_os(VARIABLE) {
        if given.is_empty() {
            return Ok(None);
        }
        let dist = PathBuf::from(given);
        println!("cargo:rerun-if-changed={}", dist.display());
        if !dist.join("index.html").is_file() {
            return Err(format!("{VARIABLE} names {}, which has no index.html", dist.display()).into());
        }
        return Ok(Some(dist));
    }
    let package = env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo names no package")?;
    let ui = Path::new(&package).parent().ok_or("the package lies in no folder")?.join("ui");
    let dist = ui.join("dist");
    // Cargo runs a script with a missing input in every build. The folder around it changes when it appears.
    let watched = if dist.is_dir() { &dist } else { &ui };
    println!("cargo:rerun-if-changed={}", watched.display());
    Ok(dist.join("index.html").is_file().then_some(dist))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        // Notes of the build tool.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the table as an expression, after it has written the contents into `out`.
fn table(dist: &Path, files: &[PathBuf], out: &Path) -> Result<String> {
    let mut table = "&[\n".to_owned();
    for file in files {
        let path = url_path(dist, file)?;
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let (_, media, compressible) = MEDIA
            .iter()
            .find(|(name, ..)| *name == extension)
            .ok_or_else(|| format!("gateway-api/build.rs has no media type for {path}"))?;
        let content = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let digest = digest(&content);
        // Copies: the folder may change before the compiler reads it.
        let name = |suffix: &str| out.join(format!("{digest}.{suffix}"));
        let compressed = name("gz");
        let is_smaller =
            *compressible && store(&compressed, || gzip(&content))? < u64::try_from(content.len())?;
        let (form, embedded) = match is_smaller {
            true => ("Gzip", compressed),
            false => ("Identity", name("identity")),
        };
        if !is_smaller {
            store(&embedded, || Ok(content))?;
        }
        writeln!(
            table,
            "File {{ path: {path:?}, media: {media:?}, digest: {digest:?}, \
             content: Embedded::{form}(include_bytes!({embedded:?})) }},",
        )?;
    }
    table.push(']');
    Ok(table)
}

/// Returns the path in a request for this file. Only characters that a request has unescaped are allowed.
fn url_path(dist: &Path, file: &Path) -> Result<String> {
    let relative = file.strip_prefix(dist)?.to_str().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if relative.is_empty() || !relative.bytes().all(plain) {
        return Err(format!("{}: not a plain name", file.display()).into());
    }
    Ok(format!("/{relative}"))
}

/// Returns half of the SHA-256 as text: enough to distinguish files, and short in a header.
fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file that its name determines, unless an earlier build has written it, and returns its size.
fn store(path: &Path, content: impl FnOnce() -> Result<Vec<u8>>) -> Result<u64> {
    if let Ok(known) = fs::metadata(path) {
        return Ok(known.len());
    }
    let partial = path.with_extension("partial");
    fs::write(&partial, content()?)?;
    fs::rename(&partial, path)?;
    Ok(fs::metadata(path)?.len())
}

/// Removes the contents that earlier builds have written and this one does not include.
fn remove_unused(out: &Path, table: &str) -> Result<()> {
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        let digest = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let is_result = |name: &OsStr| name == TABLE || name == COMPRESSED_DOCUMENT;
        if !path.file_name().is_some_and(is_result) && !table.contains(digest) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Compresses the document of the API.
fn compress_document(out: &Path) -> Result<()> {
    println!("cargo:rerun-if-changed={DOCUMENT}");
    let document = fs::read(DOCUMENT).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    Ok(fs::write(out.join(COMPRESSED_DOCUMENT), gzip(&document)?)?)
}

fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}
