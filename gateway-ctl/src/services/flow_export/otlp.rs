//! Requests to a collector of OpenTelemetry.

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use ::http::{HeaderValue, Request, StatusCode};
use bytes::Bytes;
use gateway_core::flow_export::otlp::{Resource, logs, metrics, samples};
use gateway_core::flow_log::FlowRecord;
use gateway_model::settings::groups::OtlpCollector;
use gateway_outbound::causes::with_causes;
use gateway_outbound::http::{self, Limits};
use gateway_outbound::{Dialer, KernelSockets, Resolver};
use serde_json::Value;

use super::connection::{Identity, TIMEOUT};
use crate::supervise::blocking;
use crate::tls::{self, with_authorities};

/// Maximum length of an answer.
const ANSWER: u64 = 64 << 10;

pub(super) struct Client {
    config: OtlpCollector,
    tls: tls::Client,
    names: Resolver,
    identity: Identity,
}

impl Client {
    pub(super) async fn new(
        config: &OtlpCollector,
        tls: &tls::Client,
        names: &Resolver,
        identity: Identity,
    ) -> Result<Client, String> {
        let tls = with_authorities(tls, &config.ca_certificate)?;
        let config = config.clone();
        // Opening the token takes milliseconds of CPU time.
        let (config, is_readable) = blocking(move || {
            let is_readable = !config.bearer.is_set() || config.bearer.is_readable();
            (config, is_readable)
        })
        .await;
        if !is_readable {
            return Err("the token cannot be decrypted: set it again".to_owned());
        }
        Ok(Client { config, tls, names: names.clone(), identity })
    }

    fn resource(&self) -> Resource<'_> {
        let Identity { node_id, host_name } = &self.identity;
        Resource { node_id, host_name, version: env!("CARGO_PKG_VERSION") }
    }

    pub(super) async fn send_logs(&self, records: &[FlowRecord]) -> Result<(), String> {
        self.post("/v1/logs", &logs(&self.resource(), records)).await
    }

    /// Sends the metrics of a page. `now` is in nanoseconds since 1970.
    pub(super) async fn send_metrics(&self, page: &str, now: i128) -> Result<(), String> {
        let found = samples(page);
        let started = found.iter().find(|sample| sample.name == "gateway_start_time_seconds");
        let started = started.map_or(0.0, |sample| sample.value * 1e9) as i128;
        self.post("/v1/metrics", &metrics(&self.resource(), &found, started, now)).await
    }

    async fn post(&self, path: &str, body: &Value) -> Result<(), String> {
        let request = self.request(path, body)?;
        let dialer = Dialer::by_default_route(&KernelSockets::QUICK, &self.names, TIMEOUT);
        let limits = Limits::within(TIMEOUT, ANSWER);
        let exchange = http::Client { dialer, tls: &self.tls, limits }.send(request).await;
        let response = exchange.map_err(|error| with_causes(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        Err(refusal(status))
    }

    fn request(&self, path: &str, body: &Value) -> Result<Request<Bytes>, String> {
        let url = format!("{}{path}", self.config.url.trim_end_matches('/'));
        let mut request =
            Request::post(url).header(USER_AGENT, "gatewayd").header(CONTENT_TYPE, "application/json");
        if self.config.bearer.is_set() {
            let value = HeaderValue::try_from(format!("Bearer {}", self.config.bearer.expose()));
            let mut value = value.map_err(|_| "the token has characters that no header has")?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(body.to_string().into()).map_err(|_| "the URL is not valid".to_owned())
    }
}

fn refusal(status: StatusCode) -> String {
    format!("the collector answered {}", status.as_u16())
}
