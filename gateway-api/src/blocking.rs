//! Blocking work, such as disk I/O, outside the threads of the async runtime.

use gateway_ctl::supervise::try_blocking;

use crate::error::ApiError;

/// Runs blocking work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    match try_blocking(work).await {
        Ok(value) => Ok(value),
        // The dispatcher turns panics into responses.
        Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Err(join) => Err(ApiError::internal(&join)),
    }
}
