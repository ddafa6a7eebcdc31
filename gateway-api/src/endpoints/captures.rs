//! Packet captures.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use gateway_ctl::os::capture::CaptureFailure;
use gateway_ctl::services::captures::{
    CaptureContext, CapturePreset, CaptureRequest, CaptureSession, CapturedPacket, Captures, MAX_RUNNING,
    Packets, Recording, RunningCaptures, StartError, own_addresses, presets,
};
use gateway_model::Id;
use gateway_model::problem::{Problems, code};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::query::parameters::Limit;
use crate::reply::WithHeaders;
use crate::request::{Params, Req};
use crate::streamed;
use crate::table::{Audit, Effect, Table};

const NDJSON: &str = "application/x-ndjson";
const PCAPNG: &str = "application/x-pcapng";
const START: Audit = Audit { action: "start_capture", resource_type: "capture" };
const STOP: Audit = Audit { action: "stop_capture", resource_type: "capture" };
const READ: Audit = Audit { action: "read_capture", resource_type: "capture" };

pub(super) fn rows(t: &mut Table) {
    t.view("/diagnostics/captures", "list_captures", list)
        .summary("Running and recent captures, the newest first")
        .doc("The last 20 are kept, for seven days at most.");
    t.view("/diagnostics/capture/presets", "list_capture_presets", list_presets)
        .summary("Named filters of captures");
    let endpoint = t.action("/diagnostics/capture", START.action, Effect::Acts(START), start);
    endpoint
        .summary("Start a packet capture")
        .doc("Answers when the capture receives packets. Packets from and to the API of the gateway are left out. XDP leaves the interfaces meanwhile, because it forwards packets that a capture does not see: `without_xdp` lists them. A filter needs libpcap.")
        .answers(&[
            Code::LimitReached,
            Code::InvalidState,
            Code::NotSupported,
            Code::DependencyFailed,
            Code::StorageFull,
        ])
        .status(201);
    endpoint.requires_input();
    t.view("/diagnostics/capture/{id}", "get_capture", get)
        .summary("A capture with summaries of its packets")
        .query::<SummaryQuery>();
    t.erase("/diagnostics/capture/{id}", STOP.action, Effect::Acts(STOP), stop)
        .summary("Stop a capture; delete one that has ended")
        .doc("A running capture is stopped and kept with its packets. One that has ended is deleted with its files.");
    t.stream("/diagnostics/capture/{id}/stream", "stream_capture", NDJSON, stream_packets)
        .summary("Summaries of a capture as they come, one a line")
        .doc("Begins with the first packet. A line with `session` shows the state of the capture after each silence of five seconds, and at the end. A slow reader holds nothing up and loses nothing; `dropped` counts packets that the capture itself has lost.");
    t.stream("/diagnostics/capture/{id}/pcapng", "download_capture", PCAPNG, download)
        .summary("Packets of a capture as a file of pcapng")
        .doc("With the names of the interfaces, the number of packets that were lost, and the decision of the gateway as a comment of each packet that came from a LAN. Each download is in the audit log.");
}

/// Page of the summaries of a capture.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SummaryQuery {
    /// Maximum number of summaries, 1 to 1000.
    limit: Limit<100, 1000>,
    /// Number of the packet behind which the page begins.
    after: u64,
}

/// A capture with a page of its packets.
#[derive(Debug, Serialize, JsonSchema)]
struct CaptureDetail {
    #[serde(flatten)]
    session: CaptureSession,
    /// Summaries, in the order of the packets.
    summaries: Vec<CapturedPacket>,
}

/// Result of a stop.
#[derive(Debug, Serialize, JsonSchema)]
struct StoppedCapture {
    id: Id,
    /// The capture and its files are gone. False for one that ran: it is stopped and kept.
    deleted: bool,
}

fn captures(open: &Open) -> Captures {
    open.handles.get::<Captures>()
}

fn find(open: &Open, params: &Params) -> Result<Arc<Recording>, ApiError> {
    let id = params.get("id");
    let found = id.parse().ok().and_then(|id: Id| captures(open).find(id));
    found.ok_or_else(|| ApiError::not_found("capture", id))
}

async fn list(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<CaptureSession>>, ApiError> {
    Ok(WithHeaders::counted(captures(cx.open()?).list()))
}

async fn list_presets(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<CapturePreset>>, ApiError> {
    Ok(WithHeaders::counted(presets(&own_addresses(&cx.open()?.world()))))
}

async fn start(cx: Cx, request: Req<CaptureRequest>) -> Result<WithHeaders<CaptureSession>, ApiError> {
    let open = cx.open()?;
    // Faults of the request come first.
    request.input.order(&open.world()).map_err(|problems| ApiError::validation(&problems))?;
    let running = open.handles.get::<RunningCaptures>();
    let context: &CaptureContext = running.context().ok_or_else(|| {
        ApiError::new(Code::NotSupported, "This gateway enforces nothing, so it captures nothing.")
    })?;
    let started = captures(open).start(context, &request.input, &cx.actor.name).await;
    let session = started.map_err(refused)?;
    let mut answer = WithHeaders::new(session);
    answer.status = StatusCode::CREATED;
    answer.location = Some(format!("/diagnostics/capture/{}", answer.data.id));
    answer.subject = Some(answer.data.id.to_string());
    Ok(answer)
}

fn refused(error: StartError) -> ApiError {
    match error {
        StartError::LimitReached => ApiError::new(
            Code::LimitReached,
            format!("{MAX_RUNNING} captures run already: stop one of them."),
        )
        .detail("limit", MAX_RUNNING),
        StartError::Waiting => ApiError::new(
            Code::InvalidState,
            "Captures live in the encrypted storage, which is not open: open it first.",
        )
        .detail("waits_for", "encrypted_storage"),
        StartError::Invalid(problems) => ApiError::validation(&problems),
        StartError::Failed(CaptureFailure::Filter(message)) => {
            let mut problems = Problems::new();
            problems.add(code::FORMAT, "filter", format!("libpcap refuses the filter: {message}"));
            ApiError::validation(&problems)
        }
        StartError::Failed(CaptureFailure::NoLibpcap(cause)) => {
            ApiError::not_supported("libpcap for filters (Debian package libpcap0.8)").detail("cause", cause)
        }
        StartError::Failed(CaptureFailure::System(message)) => ApiError::new(Code::DependencyFailed, message),
        StartError::Spawn(error) => ApiError::new(Code::DependencyFailed, error.to_string()),
        StartError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            ApiError::new(Code::StorageFull, "There is no room for the files of the capture.")
        }
        StartError::Io(error) => ApiError::internal(&error),
    }
}

async fn get(cx: Cx, request: Req<()>) -> Result<CaptureDetail, ApiError> {
    let recording = find(cx.open()?, &request.params)?;
    let SummaryQuery { limit, after } = request.query.read()?;
    let session = recording.session();
    let summaries = blocking(move || recording.summaries(after, limit.get())).await?;
    Ok(CaptureDetail { session, summaries: summaries.map_err(|error| ApiError::internal(&error))? })
}

async fn stop(cx: Cx, request: Req<()>) -> Result<StoppedCapture, ApiError> {
    let open = cx.open()?;
    let recording = find(open, &request.params)?;
    let id = recording.id();
    if recording.is_running() {
        recording.stop().await;
        return Ok(StoppedCapture { id, deleted: false });
    }
    captures(open).remove(id).await.map_err(|error| ApiError::internal(&error))?;
    Ok(StoppedCapture { id, deleted: true })
}

async fn stream_packets(cx: Cx, request: Req<()>) -> Result<Body, ApiError> {
    let packets = find(cx.open()?, &request.params)?.packets();
    cx.record_reading(READ).await?;
    Ok(Body::from_stream(stream::unfold(packets, |mut packets: Packets| async move {
        let part = packets.next().await?;
        Some((part.map(Bytes::from), packets))
    })))
}

async fn download(cx: Cx, request: Req<()>) -> Result<Body, ApiError> {
    let recording = find(cx.open()?, &request.params)?;
    cx.record_reading(READ).await?;
    let permit = cx.api.heavy.transfer().await?;
    Ok(streamed::body(permit, move |out| recording.write_packets(out)))
}
