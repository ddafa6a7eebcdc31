//! Hub of the federation: the settings of the session with it, and the configuration for a NATS server that is one.

use std::net::SocketAddr;

use gateway_core::federation::bus::hub::{HubOptions, unit};
use gateway_model::settings::groups::FederationBus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.group::<FederationBus>("/federation/bus", "replace_federation_bus", Access::Administer);
    t.view("/federation/hub", "get_federation_hub", hub)
        .summary("Configuration and unit for a NATS server as the hub")
        .doc(
            "For this gateway and the nodes that are approved now, each with its own key and with access to the kinds that it \
             may have. Renew it when nodes or keys change, and reload the server. Nothing of it is secret.",
        )
        .query::<HubQuery>()
        .answers(&[Code::InvalidState]);
}

/// Query of the configuration of a hub.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct HubQuery {
    /// Address and port at which it listens. Default: 0.0.0.0:4222.
    listen: Option<String>,
    /// File with its certificate in PEM. Without it the hub has no TLS.
    tls_certificate: Option<String>,
    /// File with the key of the certificate in PEM.
    tls_key: Option<String>,
}

/// Configuration of a hub.
#[derive(Debug, Serialize, JsonSchema)]
struct Hub {
    /// Content of /etc/gatewayd/federation-hub.conf.
    configuration: String,
    /// Content of /etc/systemd/system/gateway-federation-hub.service.
    unit: String,
}

async fn hub(cx: Cx, request: Req<()>) -> Result<Hub, ApiError> {
    let HubQuery { listen, tls_certificate, tls_key } = request.query.read()?;
    let listen = listen.unwrap_or_else(|| "0.0.0.0:4222".to_owned());
    if listen.parse::<SocketAddr>().is_err() {
        let message = "Expected an address with a port, such as 192.0.2.1:4222 or [2001:db8::1]:4222.";
        return Err(ApiError::invalid_parameter("listen", message));
    }
    for (name, file) in [("tls_certificate", &tls_certificate), ("tls_key", &tls_key)] {
        if file.as_ref().is_some_and(|file| !is_path(file)) {
            let message = "Expected the absolute path of a file, without quotation marks and backslashes.";
            return Err(ApiError::invalid_parameter(name, message));
        }
    }
    let tls = match (tls_certificate, tls_key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) => {
            return Err(ApiError::invalid_parameter("tls_key", "A certificate needs its key."));
        }
        (None, Some(_)) => {
            return Err(ApiError::invalid_parameter("tls_certificate", "A key needs its certificate."));
        }
    };
    let federation = cx.open()?.federation.clone();
    let configuration = blocking(move || federation.hub_configuration(&HubOptions { listen, tls })).await?;
    let configuration = configuration.ok_or_else(|| {
        let message = "This gateway has no key yet: exchange keys with a node first.";
        ApiError::new(Code::InvalidState, message)
            .detail("state", "no_key")
            .detail("allowed", Vec::<String>::new())
    })?;
    Ok(Hub { configuration, unit: unit() })
}

/// Reports whether a text may stand in quotation marks in the configuration of the hub.
fn is_path(text: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    text.starts_with('/') && text.len() <= 4096 && text.chars().all(is_plain)
}
