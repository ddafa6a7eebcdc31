//! Support bundle: what the API shows of the gateway, its metrics and its log, with pseudonyms for everything private.
//!
//! A bundle is built part by part by the handlers of other endpoints, and written to a file without a name while it is
//! built, so its size does not matter for the memory. Decision 0204 says why.

mod archive;
mod kept;
mod parts;
mod reader;
mod terms;

use std::fs::File;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use gateway_core::pseudonyms::{PseudonymKey, Pseudonymizer};
use gateway_ctl::os::nameless_file;
use gateway_ctl::service::Service;
use gateway_model::Id;
use gateway_model::settings::groups::WipeLevel;

use archive::Archive;
pub(crate) use kept::{SupportBundle, SupportBundles};
pub(crate) use terms::private_terms;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::log;

/// Explanation in the archive.
const README: &str = include_str!("support_bundle/README.txt");

/// Returns the service that erases the kept bundle and the lines of the log in a wipe.
pub(crate) fn service(open: &Open) -> Service {
    let bundles = open.handles.get::<SupportBundles>();
    Service::idle("support_bundles").erases(move |_: WipeLevel| {
        bundles.clear();
        log::forget();
        std::future::ready(Ok(()))
    })
}

/// Starts to build a bundle. Only one is built at a time, and only the last one is kept.
pub(crate) fn start(cx: &Cx) -> Result<SupportBundle, ApiError> {
    let open = cx.open()?;
    let bundles = open.handles.get::<SupportBundles>();
    let begun = bundles.begin(open.now(), &cx.actor.name).ok_or_else(|| {
        ApiError::new(Code::InvalidState, "A support bundle is being built.").detail("state", "running")
    })?;
    let (cx, id) = (cx.clone(), begun.id);
    tokio::spawn(async move {
        let built = AssertUnwindSafe(build(&cx, id, &bundles)).catch_unwind().await;
        let result = match built {
            Ok(Ok(file)) => Ok(file),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the bundle broke off by a fault of the gateway".to_owned()),
        };
        if let Err(error) = &result {
            tracing::warn!(bundle = %id, error, "failed to build a support bundle");
        }
        let Ok(open) = cx.open() else { return };
        bundles.end(id, open.now(), result);
        tokio::time::sleep(kept::RETENTION).await;
        bundles.remove(id);
    });
    Ok(begun)
}

/// Builds a bundle and returns its file.
async fn build(cx: &Cx, id: Id, bundles: &SupportBundles) -> io::Result<Arc<File>> {
    let failed = |error: ApiError| io::Error::other(error.message);
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    let pseudonymizer = terms::collect(cx).await?;
    let pseudonymizer = blocking(move || {
        let (vocabulary, terms) = pseudonymizer;
        Pseudonymizer::new(PseudonymKey::new(&bytes), vocabulary, terms)
    });
    let pseudonymizer = Arc::new(pseudonymizer.await.map_err(failed)?);
    let open = cx.open().map_err(failed)?;
    let now = open.now();
    let folder = open.store.path().parent().unwrap_or(open.store.path()).to_owned();
    let mut archive = blocking(move || {
        let mut archive = Archive::new(nameless_file::create(&folder)?, folder, now);
        archive.add_text("README.txt", README)?;
        io::Result::Ok(archive)
    })
    .await
    .map_err(failed)??;
    for part in parts::ALL {
        let (back, added) = parts::add(cx, archive, part, &pseudonymizer).await?;
        archive = back;
        bundles.add_part(id, added);
    }
    let parts = bundles.find(id).map(|bundle| bundle.parts).unwrap_or_default();
    let manifest = serde_json::json!({
        "format": "gateway-support-bundle/1",
        "version": env!("CARGO_PKG_VERSION"),
        "created_at": now,
        "parts": parts,
    });
    blocking(move || {
        archive.add_text("manifest.json", &format!("{manifest:#}\n"))?;
        archive.finish().map(Arc::new)
    })
    .await
    .map_err(failed)?
}
