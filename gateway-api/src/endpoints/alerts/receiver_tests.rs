//! Tests of the receivers of alerts.

use gateway_ctl::services::deliveries::{TargetError, TestResult};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::{ApiError, Code};
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
}

/// Result of a test of a receiver.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReceiverTest {
    /// The receiver accepted the message.
    delivered: bool,
    /// Status code of its answer; null if it did not answer, and for mail.
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
    let tested = cx.open()?.deliveries.test_webhook().await;
    tested.map(ReceiverTest::from).map_err(|error| not_set_up(&error, "PUT /alerts/webhook"))
}

async fn test_mail(cx: Cx, _: Req<()>) -> Result<ReceiverTest, ApiError> {
    let tested = cx.open()?.deliveries.test_mail().await;
    tested.map(ReceiverTest::from).map_err(|error| not_set_up(&error, "PUT /alerts/email"))
}

fn not_set_up(error: &TargetError, remedy: &'static str) -> ApiError {
    ApiError::new(Code::InvalidState, format!("The receiver cannot be tested: {error}."))
        .detail("state", "not_set_up")
        .detail("allowed", vec![remedy])
}
