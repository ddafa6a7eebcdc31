//! Warnings about stored objects that depend on the state of the host.

use std::sync::Arc;

use gateway_model::Warning;
use serde_json::Value;

use super::{Method, Table, Work};
use crate::gateway::Open;
use crate::reply::Content;

impl Table {
    /// Adds warnings to the responses of an endpoint that stores an object, which `warn` gets as it is shown.
    pub fn warned(
        &mut self,
        method: Method,
        path: &str,
        warn: impl Fn(&Open, &Value) -> Vec<Warning> + Send + Sync + Clone + 'static,
    ) {
        let endpoint = self.declared(method, path);
        let Work::Handler(inner) = endpoint.work.clone() else { return };
        endpoint.work = Work::Handler(Arc::new(move |cx, request| {
            let (answer, warn) = (inner(cx.clone(), request), warn.clone());
            Box::pin(async move {
                let mut reply = answer.await?;
                if let (Content::Data(object), Ok(open)) = (&reply.content, cx.open()) {
                    reply.warnings.extend(warn(open, object));
                }
                Ok(reply)
            })
        }));
    }
}
