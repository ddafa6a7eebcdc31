//! One attempt at a receiver, by its kind and its settings.

use std::sync::Arc;

use gateway_core::notifications::format::payload;
use gateway_core::notifications::receivers::Receiver;
use gateway_core::notifications::{AlertSnapshot, Transition, email};
use gateway_model::State;
use gateway_model::settings::groups::AlertEmail;

use super::attempt::Attempt;
use super::email::Mail;
use super::target::{TargetError, WebhookTarget};
use super::webhook::Message;
use super::{Deliveries, egress, own_networks, sender};
use crate::supervise::blocking;

impl Deliveries {
    /// Sends an alert to a receiver once. Returns the result, and the maximum number of attempts after the first.
    pub(super) async fn send(
        &self,
        state: &Arc<State>,
        receiver: Receiver,
        message_id: &str,
        transition: Transition,
        alert: &AlertSnapshot,
    ) -> (Attempt, u64) {
        let world = self.worlds.now();
        let (now, sender) = (self.store.clock().now(), sender(&world));
        match receiver {
            Receiver::Webhook | Receiver::RuleWebhook(_) => {
                let target = match self.webhook_target(state, receiver).await {
                    Ok(target) => target,
                    Err(error) => return (Attempt::refused(&error), 0),
                };
                let egress = match egress(&world, &target.egress) {
                    Ok(egress) => egress,
                    Err(reason) => return (Attempt::failed(reason), target.retries),
                };
                let payload = payload(target.format, transition, alert, &sender, now);
                let own = own_networks(&world);
                let message = Message { id: message_id, payload, now, egress: &egress, own: &own };
                (self.webhooks.send(&target, message).await, target.retries)
            }
            Receiver::Email => {
                let state = state.clone();
                // Opening the password takes milliseconds of CPU time.
                let config: AlertEmail = blocking(move || {
                    let config: AlertEmail = state.group();
                    config.password.is_readable();
                    config
                })
                .await;
                let egress = match egress(&world, &config.egress) {
                    Ok(egress) => egress,
                    Err(reason) => return (Attempt::failed(reason), config.retries),
                };
                let text = email::text(transition, alert, &sender);
                let mail = Mail { message_id, node: &sender.node, text, now, egress: &egress };
                (self.mails.send(&config, mail).await, config.retries)
            }
        }
    }

    /// Returns the target of a webhook.
    pub(super) async fn webhook_target(
        &self,
        state: &Arc<State>,
        receiver: Receiver,
    ) -> Result<WebhookTarget, TargetError> {
        let state = state.clone();
        blocking(move || WebhookTarget::of(&state, receiver)).await
    }
}
