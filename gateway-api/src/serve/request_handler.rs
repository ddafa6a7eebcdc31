//! Handler of all requests of a listener.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use http::{Request, Response};

use crate::peer::Peer;

/// Handler of all requests. It is no service of a framework: each layer of one costs allocations on every request.
pub trait RequestHandler: Send + Sync + 'static {
    fn handle(self: Arc<Self>, request: Request<Body>, peer: Peer) -> ResponseFuture;
}

pub type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
