//! Limits on large responses: how many are computed concurrently, and how many bytes of them wait to be sent.
//!
//! A list of thousands of objects takes tens of megabytes while it is computed. Without limits, some hundred clients
//! that request it concurrently exhaust the memory of the process. The views of all policies are kept as bytes for all
//! readers ([`crate::view_cache`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Maximum number of large responses computed concurrently.
const COMPUTED_AT_ONCE: usize = 2;
/// Size in bytes from which a response counts against the limit of unsent bytes.
const LARGE_BYTES: usize = 64 << 10;
/// Maximum total of unsent bytes of large responses, in KiB.
const UNSENT_KIB: usize = 48 << 10;
/// Maximum number of imports and exports in progress.
const TRANSFERS: usize = 2;
/// Timeout of the wait for a limit. After it the client is asked to retry.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Time without large responses before free memory goes back to the kernel.
const QUIET_PERIOD: Duration = Duration::from_millis(500);

/// Limits of one API.
#[derive(Debug)]
pub struct Heavy {
    computed: Arc<Semaphore>,
    unsent: Arc<Semaphore>,
    transfers: Arc<Semaphore>,
    trimming: Arc<AtomicBool>,
}

impl Default for Heavy {
    fn default() -> Self {
        Self {
            computed: Arc::new(Semaphore::new(COMPUTED_AT_ONCE)),
            unsent: Arc::new(Semaphore::new(UNSENT_KIB)),
            transfers: Arc::new(Semaphore::new(TRANSFERS)),
            trimming: Arc::default(),
        }
    }
}

impl Heavy {
    /// Waits for a permit to compute one large response. The permit is valid until it is dropped.
    pub async fn admit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = acquire(&self.computed, 1).await?;
        self.return_memory_afterwards();
        Ok(permit)
    }

    /// Waits for a permit to import or export one configuration.
    pub async fn transfer(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = acquire(&self.transfers, 1).await?;
        self.return_memory_afterwards();
        Ok(permit)
    }

    /// Counts the bytes of a response as unsent until their last copy is dropped.
    pub async fn until_sent(&self, bytes: Vec<u8>) -> Result<Bytes, ApiError> {
        if bytes.len() < LARGE_BYTES {
            return Ok(bytes.into());
        }
        // One response may exceed the limit; it is then sent alone.
        let permit = Box::pin(acquire(&self.unsent, bytes.len().div_ceil(1 << 10).min(UNSENT_KIB))).await?;
        Ok(Bytes::from_owner(PendingBytes { bytes, _permit: permit }))
    }

    /// Returns free memory to the kernel once no large response is computed. The allocator keeps it otherwise.
    fn return_memory_afterwards(&self) {
        if self.trimming.swap(true, Ordering::AcqRel) {
            return;
        }
        let (computed, transfers) = (self.computed.clone(), self.transfers.clone());
        let trimming = self.trimming.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(QUIET_PERIOD).await;
                if computed.available_permits() == COMPUTED_AT_ONCE
                    && transfers.available_permits() == TRANSFERS
                {
                    break;
                }
            }
            trimming.store(false, Ordering::Release);
            // The task only fails when the runtime stops.
            let _ = tokio::task::spawn_blocking(gateway_ctl::os::rlimit::return_free_memory).await;
        });
    }
}

async fn acquire(semaphore: &Arc<Semaphore>, permits: usize) -> Result<OwnedSemaphorePermit, ApiError> {
    let permits = u32::try_from(permits).unwrap_or(u32::MAX);
    match tokio::time::timeout(MAX_WAIT, semaphore.clone().acquire_many_owned(permits)).await {
        Ok(Ok(permit)) => Ok(permit),
        // The semaphore is never closed.
        Ok(Err(_)) | Err(_) => {
            Err(ApiError::not_ready("Too many large responses are in progress; try again."))
        }
    }
}

/// Bytes that are not sent yet.
struct PendingBytes {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for PendingBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_so_many_answers_are_computed_at_once() {
        let heavy = Heavy::default();
        let mut held = Vec::new();
        for _ in 0..COMPUTED_AT_ONCE {
            held.push(heavy.admit().await.expect("a permit"));
        }
        let refused = heavy.admit().await.expect_err("no permit is free");
        assert_eq!((refused.code.status().as_u16(), refused.retry_after), (503, Some(5)));
        held.pop();
        drop(heavy.admit().await.expect("a permit was dropped"));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_count_until_the_last_copy_is_dropped() {
        let heavy = Heavy::default();
        let most = vec![0; UNSENT_KIB << 10];
        let sent = heavy.until_sent(most).await.expect("room");
        let copy = sent.clone();
        drop(sent);
        assert!(heavy.until_sent(vec![0; LARGE_BYTES]).await.is_err());
        drop(heavy.until_sent(vec![0; LARGE_BYTES - 1]).await.expect("small answers are not counted"));
        drop(copy);
        drop(heavy.until_sent(vec![0; LARGE_BYTES]).await.expect("room"));
    }
}
