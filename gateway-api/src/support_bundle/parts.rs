//! Parts of a bundle: replies of the API, metrics, the log.

use std::io::{self, BufRead as _, BufReader, Write};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::pseudonyms::Pseudonymizer;

use super::archive::Archive;
use super::kept::BundlePart;
use super::reader::ReplyReader;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::log;
use crate::request::{Query, Request};
use crate::table::{Cost, Endpoint, Work};

/// Timeout of the handler of a part.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a line of metrics, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// A part of each bundle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Name of its file.
    pub file: &'static str,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// JSON of an operation, with its query.
    Json(&'static str, &'static [(&'static str, &'static str)]),
    Metrics,
    Log,
}

const fn json(file: &'static str, operation: &'static str) -> Part {
    Part { file, source: Source::Json(operation, &[]) }
}

pub(super) const ALL: &[Part] = &[
    json("version.json", "get_version"),
    json("status.json", "get_status"),
    Part { file: "health.json", source: Source::Json("get_health", &[("full", "true")]) },
    json("observer.json", "list_observer"),
    json("platform.json", "get_platform"),
    json("interfaces.json", "list_interfaces"),
    json("services.json", "list_services"),
    json("configuration.json", "export_config"),
    json("settings.json", "get_settings"),
    json("pending.json", "list_pending_policies"),
    json("plan.json", "get_render"),
    json("enforcement.json", "get_enforcement"),
    json("verify.json", "verify_plan"),
    json("drift.json", "list_drift"),
    json("policies.json", "list_routing_policies"),
    json("tunnels.json", "list_tunnels"),
    json("uplinks.json", "get_wan_manager"),
    json("uplink-health.json", "get_wan_health"),
    json("dns.json", "get_dns_status"),
    Part { file: "alerts.json", source: Source::Json("list_alerts", &[("limit", "200")]) },
    Part { file: "metrics.txt", source: Source::Metrics },
    Part { file: "log.txt", source: Source::Log },
];

/// Adds a part to the archive. A part that fails is missing; only an archive that cannot be written is an error.
pub(super) async fn add(
    cx: &Cx,
    mut archive: Archive,
    part: &Part,
    pseudonymizer: &Arc<Pseudonymizer>,
) -> io::Result<(Archive, BundlePart)> {
    let source = match part.source {
        Source::Json(operation, query) => reply_of(cx, operation, query).await.map(Some),
        Source::Metrics => reply_of(cx, "get_metrics", &[]).await.map(Some),
        Source::Log => Ok(None),
    };
    let missing =
        |error: String| BundlePart { file: part.file, size: None, error: Some(pseudonymizer.text(&error)) };
    let source = match source {
        Ok(source) => source,
        Err(error) => return Ok((archive, missing(format!("{}: {}", error.code.as_str(), error.message)))),
    };
    let (rules, part) = (pseudonymizer.clone(), *part);
    let added = blocking(move || {
        let added = archive.add_written(part.file, |out| match (source, part.source) {
            (Some(reply), Source::Json(..)) => {
                rules.copy_json(BufReader::with_capacity(1 << 16, reply), out)?;
                out.write_all(b"\n")
            }
            (Some(reply), _) => write_metrics(&rules, reply, out),
            (None, _) => write_log(&rules, out),
        });
        (archive, added)
    });
    let (archive, added) = added.await.map_err(|error| io::Error::other(error.message))?;
    let part = match added {
        Ok(size) => BundlePart { file: part.file, size: Some(size), error: None },
        Err(error) if error.kind() == io::ErrorKind::StorageFull => return Err(error),
        Err(error) => missing(error.to_string()),
    };
    Ok((archive, part))
}

/// Runs the handler of an operation as the caller, and returns a reader of its reply.
pub(super) async fn reply_of(
    cx: &Cx,
    operation: &str,
    query: &[(&str, &str)],
) -> Result<ReplyReader, ApiError> {
    let endpoints = cx.api.table.endpoints();
    let found = endpoints.iter().find(|endpoint| endpoint.operation == operation);
    let Some(Endpoint { work: Work::Handler(handler), access, output, cost, .. }) = found else {
        return Err(ApiError::new(Code::NotSupported, format!("{operation} is not supported.")));
    };
    cx.require(*access)?;
    let permit =
        if output.is_list() || *cost == Cost::Heavy { Some(cx.api.heavy.admit().await?) } else { None };
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = Request { query: Query(query), ..Request::default() };
    let answered = tokio::time::timeout(HANDLER_TIMEOUT, handler(cx.clone(), request)).await;
    drop(permit);
    let late = |_| ApiError::new(Code::UpstreamTimeout, "There was no answer in time.");
    ReplyReader::new(answered.map_err(late)??)
}

fn write_metrics(rules: &Pseudonymizer, reply: ReplyReader, out: &mut dyn Write) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 16, reply);
    let mut line = String::new();
    loop {
        line.clear();
        if io::Read::take(&mut reader, MAX_LINE_BYTES).read_line(&mut line)? == 0 {
            return Ok(());
        }
        out.write_all(rules.metrics_line(&line).as_bytes())?;
    }
}

fn write_log(rules: &Pseudonymizer, out: &mut dyn Write) -> io::Result<()> {
    let lines = log::last_lines().ok_or_else(|| io::Error::other("unknown: this process keeps no log"))?;
    lines.iter().try_for_each(|line| writeln!(out, "{}", rules.text(line.trim_end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_an_operation_that_reads() {
        let table = crate::endpoints::table();
        for part in ALL {
            let Source::Json(operation, query) = part.source else { continue };
            let endpoint = table.endpoints().iter().find(|endpoint| endpoint.operation == operation);
            let endpoint = endpoint.unwrap_or_else(|| panic!("{operation}"));
            assert_eq!(endpoint.method, crate::table::Method::Get, "{operation}");
            assert!(endpoint.needs().is_none(), "{operation}");
            for (name, _) in query {
                assert!(endpoint.parameter_names().any(|known| known == *name), "{operation} {name}");
            }
        }
    }
}
