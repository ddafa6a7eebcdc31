//! Test of a receiver: one message about nothing, outside the outbox.

use gateway_core::notifications::outbox::Outcome;
use gateway_core::notifications::receivers::Receiver;
use gateway_core::notifications::{Transition, test_alert};
use gateway_model::settings::groups::AlertEmail;
use tokio::time::Instant;

use super::Deliveries;
use super::attempt::TestResult;
use super::target::TargetError;

impl Deliveries {
    /// Sends a test to the default webhook, even while it is off.
    pub async fn test_webhook(&self) -> Result<TestResult, TargetError> {
        self.webhook_target(&self.store.current(), Receiver::Webhook).await?;
        Ok(self.test(Receiver::Webhook).await)
    }

    /// Sends a test mail, even while mail is off.
    pub async fn test_mail(&self) -> Result<TestResult, TargetError> {
        let config: AlertEmail = self.store.current().group();
        if config.host.is_empty() || config.from.is_empty() || config.to.is_empty() {
            return Err(TargetError::NoMailServer);
        }
        Ok(self.test(Receiver::Email).await)
    }

    async fn test(&self, receiver: Receiver) -> TestResult {
        let alert = test_alert(self.store.clock().now());
        let (id, begun) = (format!("msg_{}", alert.id), Instant::now());
        let (attempt, _) = self.send(&self.store.current(), receiver, &id, Transition::Firing, &alert).await;
        self.stats.note(receiver, &attempt);
        TestResult {
            delivered: attempt.outcome == Outcome::Accepted,
            status: attempt.status,
            latency: begun.elapsed(),
            error: attempt.error().map(str::to_owned),
        }
    }
}
