//! Work that waits, for the disk say, away from the threads that answer.

use crate::error::ApiError;

/// Runs what waits for the disk where waiting is allowed.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => Ok(value),
        // The dispatcher answers for panics.
        Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Err(join) => Err(ApiError::internal(&join)),
    }
}
