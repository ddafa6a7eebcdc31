//! Post-quantum key exchange of TLS, inbound and outbound.

use gateway_ctl::tls::{ClientReport, InboundExchanges, PqMode};
use gateway_model::{Problems, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Method, Table};
use crate::tls::Tls;

const AUDIT: Audit = Audit { action: "replace_pq_crypto", resource_type: "pq_crypto" };

pub(super) fn rows(t: &mut Table) {
    t.view("/pq-crypto", "get_pq_crypto", show).summary("Key exchanges of TLS sessions").doc(
        "curves lists the offered groups in order of preference; clients lists the daemon's own TLS clients by purpose.",
    );
    let row = t.action("/pq-crypto", AUDIT.action, Effect::Stores(AUDIT), replace);
    row.summary("Set the post-quantum mode")
        .doc(
            "Applies to each new TLS session after the response, inbound and outbound; established sessions continue. With required, peers without post-quantum key exchange are refused; the warnings name such peers that connected earlier.",
        )
        .access(Access::Administer);
    row.method = Method::Put;
    row.requires_input();
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PqCrypto {
    pub mode: PqMode,
    /// Offered key exchange groups in order of preference.
    pub curves: Vec<String>,
    /// Key exchange groups that any mode offers.
    pub supported: Vec<String>,
    /// Outbound TLS clients, each with its last negotiated group.
    pub clients: Vec<ClientReport>,
    /// Key exchange groups of inbound sessions since the start of the daemon.
    pub inbound: InboundExchanges,
}

impl PqCrypto {
    fn of(tls: &Tls) -> Self {
        let mode = tls.factory.mode();
        Self {
            mode,
            curves: mode.curves(),
            supported: PqMode::supported(),
            clients: tls.factory.clients(),
            inbound: tls.factory.inbound(),
        }
    }

    /// Returns warnings about clients that this mode would have rejected.
    fn warnings(&self) -> Vec<Warning> {
        if self.mode != PqMode::Required {
            return Vec::new();
        }
        let classic = |name: &str| !name.contains("MLKEM");
        let mut warnings = Vec::new();
        for (index, client) in self.clients.iter().enumerate() {
            if let Some(group) = client.last_group.as_deref().filter(|group| classic(group)) {
                let message = format!(
                    "The last session of {} used {group}; if its server supports no post-quantum group, new sessions fail.",
                    client.name
                );
                warnings.push(Warning::new(format!("clients[{index}]"), message));
            }
        }
        let seen: u64 = self.inbound.sessions.iter().filter(|(name, _)| classic(name)).map(|(_, n)| n).sum();
        if seen > 0 {
            let message = format!(
                "{seen} TLS sessions with the gateway were without post-quantum key exchange since it started; such \
                 clients are refused from now on. The local socket is not affected."
            );
            warnings.push(Warning::new("inbound.sessions", message));
        }
        warnings
    }
}

/// Fields of the request. Other fields of the response may be sent back and are ignored.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "PqCryptoRequest")]
pub(super) struct PqCryptoInput {
    #[schemars(required)]
    pub mode: Option<PqMode>,
    #[serde(rename = "curves")]
    #[schemars(skip)]
    _curves: Value,
    #[serde(rename = "supported")]
    #[schemars(skip)]
    _supported: Value,
    #[serde(rename = "clients")]
    #[schemars(skip)]
    _clients: Value,
    #[serde(rename = "inbound")]
    #[schemars(skip)]
    _inbound: Value,
}

async fn show(cx: Cx, _: Req<()>) -> Result<PqCrypto, ApiError> {
    Ok(PqCrypto::of(&cx.open()?.tls))
}

async fn replace(cx: Cx, request: Req<PqCryptoInput>) -> Result<WithHeaders<PqCrypto>, ApiError> {
    let Some(mode) = request.input.mode else {
        let mut problems = Problems::new();
        problems.required("mode");
        return Err(ApiError::validation(&problems));
    };
    cx.commit(move |draft| {
        if draft.settings.get(PqMode::KEY) != Some(&json!(mode)) {
            draft.set(PqMode::KEY, json!(mode));
        }
        Ok(())
    })
    .await?;
    let open = cx.open()?;
    // Before the response, so that a client can rely on the new mode once it has the response.
    open.tls.adopt(&open.store);
    let shown = PqCrypto::of(&open.tls);
    let warnings = shown.warnings();
    Ok(WithHeaders { warnings, ..WithHeaders::new(shown) })
}
