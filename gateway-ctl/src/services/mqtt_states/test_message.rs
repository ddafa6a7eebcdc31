//! Test of the broker.

use gateway_model::settings::groups::AlertMqtt;
use gateway_outbound::causes::with_causes;
use tokio::time::Instant;

use super::{MqttStates, client_id};
use crate::services::deliveries::{TargetError, TestResult, egress};

impl MqttStates {
    /// Publishes a message that the broker does not keep, even while the broker is off.
    pub async fn test(&self) -> Result<TestResult, TargetError> {
        let config = self.config();
        if config.host.is_empty() {
            return Err(TargetError::NoBroker);
        }
        let begun = Instant::now();
        let result = self.publish_test(&config).await;
        Ok(TestResult {
            delivered: result.is_ok(),
            status: None,
            latency: begun.elapsed(),
            error: result.err(),
        })
    }

    async fn publish_test(&self, config: &AlertMqtt) -> Result<(), String> {
        let identity = self.identity(config);
        // A broker ends the session of the states if another one has its client id.
        let egress = egress(&self.worlds.now(), &config.egress)?;
        let client_id = format!("{}-test", client_id(&identity));
        let mut session = self.open(config, client_id, None, &egress).await?;
        let published = session.publish_once(&identity.test_topic(), "test").await;
        session.close().await;
        published.map_err(|error| with_causes(&error))
    }
}
