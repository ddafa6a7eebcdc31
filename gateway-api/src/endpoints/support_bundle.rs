//! Support bundle: build, state, download.

use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;

use axum::body::Body;
use gateway_model::Id;
use http::StatusCode;

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::{Params, Req};
use crate::streamed;
use crate::support_bundle::{self, SupportBundle, SupportBundles};
use crate::table::{Audit, Effect, Table};

const GZIP: &str = "application/gzip";
/// Size of the parts that are read of the archive.
const PART_BYTES: usize = 64 << 10;
const CREATE: Audit = Audit { action: "create_support_bundle", resource_type: "support_bundle" };
const READ: Audit = Audit { action: "read_support_bundle", resource_type: "support_bundle" };

pub(super) fn rows(t: &mut Table) {
    t.command("/diagnostics/bundle", CREATE.action, Effect::Acts(CREATE), start)
        .summary("Build a support bundle")
        .doc("An archive of version, configuration, plan, drift, health, status, metrics and the last lines of the log. Names, public addresses, domains, MAC addresses, e-mail addresses, SSIDs and secrets are replaced by pseudonyms, the same ones everywhere in the bundle; private addresses keep their prefixes. Answers at once; the bundle is complete when its state is done. The last one is kept for 30 minutes.")
        .access(Access::Administer)
        .answers(&[Code::InvalidState])
        .status(202);
    t.view("/diagnostics/bundle/{id}", "get_support_bundle", get)
        .summary("State of a support bundle, and its parts")
        .access(Access::Administer);
    t.stream("/diagnostics/bundle/{id}/archive", "download_support_bundle", GZIP, download)
        .summary("A support bundle as a tar archive under gzip")
        .doc("Each download is in the audit log.")
        .access(Access::Administer)
        .answers(&[Code::InvalidState]);
}

fn id(params: &Params) -> Result<Id, ApiError> {
    let id = params.get("id");
    id.parse().map_err(|_| ApiError::not_found("support bundle", id))
}

fn find(cx: &Cx, params: &Params) -> Result<SupportBundle, ApiError> {
    let bundles = cx.open()?.handles.get::<SupportBundles>();
    bundles.find(id(params)?).ok_or_else(|| ApiError::not_found("support bundle", params.get("id")))
}

async fn start(cx: Cx, _: Req<()>) -> Result<WithHeaders<SupportBundle>, ApiError> {
    let mut answer = WithHeaders::new(support_bundle::start(&cx)?);
    answer.status = StatusCode::ACCEPTED;
    answer.location = Some(format!("/diagnostics/bundle/{}", answer.data.id));
    answer.subject = Some(answer.data.id.to_string());
    Ok(answer)
}

async fn get(cx: Cx, request: Req<()>) -> Result<SupportBundle, ApiError> {
    find(&cx, &request.params)
}

async fn download(cx: Cx, request: Req<()>) -> Result<Body, ApiError> {
    let bundle = find(&cx, &request.params)?;
    let file = cx.open()?.handles.get::<SupportBundles>().file(bundle.id).ok_or_else(|| {
        ApiError::new(Code::InvalidState, "The support bundle is not complete.")
            .detail("state", bundle.state.as_str())
            .detail("allowed", ["done"])
    })?;
    cx.record_reading(READ).await?;
    let permit = cx.api.heavy.transfer().await?;
    Ok(streamed::body(permit, move |out: &mut dyn Write| {
        let (mut offset, mut part) = (0, vec![0; PART_BYTES]);
        loop {
            // Without a position of the file: another download may read it at the same time.
            let length = file.read_at(&mut part, offset)?;
            if length == 0 {
                return io::Result::Ok(());
            }
            out.write_all(&part[..length])?;
            offset += length as u64;
        }
    }))
}
