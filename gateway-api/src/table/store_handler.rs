//! Handlers of operations on stored objects. They are not generic beyond their begin: there are two for each kind of
//! object.

use std::sync::Arc;

use super::{Pending, Work};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::Reply;
use crate::request::Request;

type Run = Arc<dyn Fn(Cx, Request) -> Result<Reply, ApiError> + Send + Sync>;

/// Returns a handler that runs on a thread that may block, because it waits for the disk.
pub(super) fn on_disk(run: impl Fn(Cx, Request) -> Result<Reply, ApiError> + Send + Sync + 'static) -> Work {
    let run: Run = Arc::new(run);
    Work::Handler(Arc::new(move |cx, request| run_blocking(run.clone(), cx, request)))
}

/// Returns a handler for objects in memory. It does not block.
pub(super) fn in_memory(
    run: impl Fn(Cx, Request) -> Result<Reply, ApiError> + Send + Sync + 'static,
) -> Work {
    let run: Run = Arc::new(run);
    Work::Handler(Arc::new(move |cx, request| run_here(run.clone(), cx, request)))
}

fn run_blocking(run: Run, cx: Cx, request: Request) -> Pending {
    Box::pin(async move { blocking(move || run(cx, request)).await? })
}

fn run_here(run: Run, cx: Cx, request: Request) -> Pending {
    Box::pin(async move { run(cx, request) })
}
