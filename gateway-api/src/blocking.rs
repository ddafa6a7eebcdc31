//! Blocking work, such as disk I/O, outside the threads of the async runtime.

use std::any::Any;

use crate::error::ApiError;

/// Work with its result in a box.
type BoxedWork = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// Runs blocking work on a thread that may block.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let result = run(Box::new(move || Box::new(work()))).await?;
    Ok(*result.downcast().expect("the work returns this type"))
}

/// Not generic: a task for each type of work would be half a megabyte of code.
async fn run(work: BoxedWork) -> Result<Box<dyn Any + Send>, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => Ok(value),
        // The dispatcher turns panics into responses.
        Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Err(join) => Err(ApiError::internal(&join)),
    }
}
