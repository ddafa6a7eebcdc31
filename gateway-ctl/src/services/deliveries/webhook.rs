//! One attempt of a webhook: a request over the gateway's own TLS, without proxies and without redirects.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, RETRY_AFTER, USER_AGENT};
use ::http::{HeaderValue, Request};
use bytes::Bytes;
use gateway_core::notifications::payload::Payload;
use gateway_core::notifications::{response, signature};
use gateway_outbound::causes::with_causes;
use gateway_outbound::http::{self, Limits};
use gateway_outbound::{Dialer, Egress, KernelSockets, Resolver, Targets};
use ipnet::IpNet;
use jiff::Timestamp;

use super::attempt::Attempt;
use super::target::WebhookTarget;
use crate::tls::{Client, Factory, with_authorities};

/// Sender of webhooks.
pub(super) struct WebhookSender {
    tls: Client,
    endpoint_names: Resolver,
}

/// Message of one attempt.
pub(super) struct Message<'a> {
    pub id: &'a str,
    pub payload: Payload,
    pub now: Timestamp,
    pub egress: &'a Egress,
    /// Networks of the LAN and addresses of this host, which only a private receiver may have.
    pub own: &'a [IpNet],
}

impl WebhookSender {
    pub(super) fn new(tls: &Arc<Factory>, endpoint_names: Resolver) -> WebhookSender {
        WebhookSender { tls: tls.client("alert webhook"), endpoint_names }
    }

    /// Sends a message once.
    pub(super) async fn send(&self, target: &WebhookTarget, message: Message<'_>) -> Attempt {
        let request = match request(target, &message) {
            Ok(request) => request,
            Err(error) => return Attempt::refused(&error),
        };
        let exchange = tokio::time::timeout(target.timeout, self.exchange(target, request, &message));
        let (status, retry_after) = match exchange.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Attempt::failed(error),
            Err(_) => return Attempt::failed(format!("no answer within {} s", target.timeout.as_secs())),
        };
        let retry_after = retry_after.and_then(|text| response::retry_after(&text, message.now));
        Attempt { status: Some(status), outcome: response::outcome(status, retry_after) }
    }

    async fn exchange(
        &self,
        target: &WebhookTarget,
        request: Request<Bytes>,
        message: &Message<'_>,
    ) -> Result<(u16, Option<String>), String> {
        let tls = with_authorities(&self.tls, &target.ca_certificate)?;
        let dialer = Dialer {
            sockets: &KernelSockets::QUICK,
            names: &self.endpoint_names,
            egress: message.egress,
            targets: if target.allow_private { Targets::Any } else { Targets::Public { own: message.own } },
            timeout: target.timeout,
        };
        let limits = Limits {
            tls_timeout: target.timeout,
            head_timeout: target.timeout,
            // The body is not read, so it is no reason to send again.
            piece_timeout: Duration::ZERO,
            body_bytes: u64::MAX,
            redirects: 0,
        };
        let response = http::Client { dialer, tls: &tls, limits }.send(request).await.map_err(explain)?;
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok((response.status().as_u16(), retry_after.map(str::to_owned)))
    }
}

fn explain(error: http::Error) -> String {
    match error {
        http::Error::PrivateTarget(address) => {
            format!("{address} is this host or a private address, which `allow_private` does not allow")
        }
        error => with_causes(&error),
    }
}

fn request(target: &WebhookTarget, message: &Message<'_>) -> Result<Request<Bytes>, String> {
    let Payload { headers, body } = &message.payload;
    let secret = target.signing_secret.is_set().then(|| target.signing_secret.expose());
    let mut request = Request::post(target.url.as_str()).header(USER_AGENT, "gatewayd");
    let signed = signature::headers(message.id, message.now, body, secret);
    for (name, value) in headers.iter().chain(&signed) {
        request = request.header(*name, value);
    }
    if target.bearer.is_set() {
        let value = HeaderValue::try_from(format!("Bearer {}", target.bearer.expose()));
        let mut value = value.map_err(|_| "the token has characters that no header has".to_owned())?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    request.body(body.clone().into()).map_err(|_| "the URL is not valid".to_owned())
}
