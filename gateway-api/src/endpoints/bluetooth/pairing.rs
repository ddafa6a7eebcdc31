//! Pairing with Bluetooth devices.

use gateway_core::bluetooth::pairing::is_pin;
use gateway_ctl::services::bluetooth::{PairRequest, PairResult};
use gateway_model::id::MacAddr;
use gateway_model::problem::{Problems, code};
use schemars::JsonSchema;
use serde::Deserialize;

use super::access::{DEVICE, FAILURES, acts, bluetooth, refused, settings};
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    let endpoint = t.action("/bluetooth/pair", "pair_bluetooth", acts("pair_bluetooth", DEVICE), pair);
    endpoint
        .summary("Pair with a Bluetooth device, answer a pairing that waits, or trust a paired device")
        .doc("Answers when a user has to act, when the pairing is over, or after eight seconds. In the state `confirm_passkey`, send the passkey that the device shows; in `accept`, send `accept`; in `enter_pin`, send `pin`; in `enter_on_device`, type `passkey` on the device. A pairing without an answer fails after a minute.")
        .answers(FAILURES)
        .answers(&[Code::NotFound]);
    endpoint.requires_input();
}

/// Pairing with a device, or the answer to one that waits.
#[derive(Deserialize, JsonSchema)]
struct PairInput {
    mac: MacAddr,
    /// PIN of the device, or passkey that only the device shows; 1 to 16 printable characters.
    #[serde(default)]
    #[schemars(with = "String")]
    pin: Option<String>,
    /// Passkey that both devices show: confirms the pairing, or refuses it if another one is shown here.
    #[serde(default)]
    #[schemars(with = "String")]
    passkey: Option<String>,
    /// True accepts a pairing without a passkey; false refuses any.
    #[serde(default)]
    #[schemars(with = "bool")]
    accept: Option<bool>,
    /// The device may use services of the gateway without a question. Changes a paired device, too.
    #[serde(default)]
    #[schemars(with = "bool")]
    trusted: Option<bool>,
}

async fn pair(cx: Cx, request: Req<PairInput>) -> Result<WithHeaders<PairResult>, ApiError> {
    let PairInput { mac, pin, passkey, accept, trusted } = request.input;
    if pin.as_deref().is_some_and(|pin| !is_pin(pin)) {
        let mut problems = Problems::new();
        problems.add(code::FORMAT, "pin", "Expected 1 to 16 printable characters.");
        return Err(ApiError::validation(&problems));
    }
    let (settings, now) = (settings(&cx)?, cx.open()?.now());
    let asked = PairRequest { pin, passkey, accept, trusted };
    let result = bluetooth(&cx)?.pair(mac, asked, &settings, now).await.map_err(refused)?;
    let mut answer = WithHeaders::new(result);
    answer.subject = Some(mac.to_string());
    Ok(answer)
}
