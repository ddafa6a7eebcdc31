//! Tests of the receivers of alerts.

use gateway_ctl::reconcile::Reason;
use gateway_ctl::services::deliveries::{TargetError, TestResult};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    t.command(
        "/alerts/webhook/test",
        "test_alert_webhook",
        Effect::Acts(Audit { action: "test_alert_webhook", resource_type: "alert_webhook" }),
        test_webhook,
    )
    .summary("Send a test to the default webhook")
    .doc(
        "Sends one message about an alert of kind `test`, also while the webhook is off. It is not repeated. The response \
         says whether the receiver accepted it.",
    )
    .answers(&[Code::InvalidState]);
    t.command(
        "/alerts/email/test",
        "test_alert_email",
        Effect::Acts(Audit { action: "test_alert_email", resource_type: "alert_email" }),
        test_mail,
    )
    .summary("Send a test mail")
    .doc(
        "Sends one mail about an alert of kind `test`, also while mail is off. It is not repeated. The response says whether \
         the mail server accepted it.",
    )
    .answers(&[Code::InvalidState]);
    t.command(
        "/alerts/mqtt/test",
        "test_alert_mqtt",
        Effect::Acts(Audit { action: "test_alert_mqtt", resource_type: "alert_mqtt" }),
        test_mqtt,
    )
    .summary("Publish a test at the MQTT broker")
    .doc(
        "Opens a session of its own and publishes one message to the topic `test` of this gateway, also while the broker is \
         off. The broker does not keep it. The response says whether the broker accepted it.",
    )
    .answers(&[Code::InvalidState]);
}

/// Result of a test of a receiver.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReceiverTest {
    /// The receiver accepted the message.
    delivered: bool,
    /// Status code of its answer; null if it did not answer, and for mail and MQTT.
    status: Option<u16>,
    latency_ms: u64,
    /// Reason why it was not delivered.
    error: Option<String>,
}

impl From<TestResult> for ReceiverTest {
    fn from(TestResult { delivered, status, latency, error }: TestResult) -> Self {
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        Self { delivered, status, latency_ms, error }
    }
}

async fn test_webhook(cx: Cx, _: Req<()>) -> Result<ReceiverTest, ApiError> {
    let tested = enforced(&cx).await?.deliveries.test_webhook().await;
    tested.map(ReceiverTest::from).map_err(|error| not_set_up(&error, "PUT /alerts/webhook"))
}

async fn test_mail(cx: Cx, _: Req<()>) -> Result<ReceiverTest, ApiError> {
    let tested = enforced(&cx).await?.deliveries.test_mail().await;
    tested.map(ReceiverTest::from).map_err(|error| not_set_up(&error, "PUT /alerts/email"))
}

async fn test_mqtt(cx: Cx, _: Req<()>) -> Result<ReceiverTest, ApiError> {
    let tested = enforced(&cx).await?.mqtt_states.test().await;
    tested.map(ReceiverTest::from).map_err(|error| not_set_up(&error, "PUT /alerts/mqtt"))
}

/// Waits until the kernel has the route of the receiver's egress, which may have just been set.
async fn enforced(cx: &Cx) -> Result<&Open, ApiError> {
    let open = cx.open()?;
    open.reconcile(Reason::Revision).await?;
    Ok(open)
}

fn not_set_up(error: &TargetError, remedy: &'static str) -> ApiError {
    ApiError::new(Code::InvalidState, format!("The receiver cannot be tested: {error}."))
        .detail("state", "not_set_up")
        .detail("allowed", vec![remedy])
}
