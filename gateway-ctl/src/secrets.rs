//! Decryption of sealed secrets outside of the async worker threads.

use gateway_model::Secret;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Limits key derivations to one at a time. Each takes milliseconds of a CPU (PBKDF2); the other CPUs stay free for
/// packets, queries and the API.
static TURN: Semaphore = Semaphore::const_new(1);

/// Returns the text of a secret, as [`Secret::expose`] does.
pub(crate) async fn open(secret: &Secret) -> &str {
    if !secret.is_opened()
        && let Ok(_turn) = TURN.acquire().await
    {
        // A clone shares the decrypted text.
        let secret = secret.clone();
        let _ = spawn_blocking(move || secret.is_readable()).await;
    }
    secret.expose()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{ThreadId, current};

    use gateway_model::secret::Open;
    use parking_lot::Mutex;
    use zeroize::Zeroizing;

    use super::*;

    struct SecretOpener(Mutex<Vec<ThreadId>>);

    impl Open for SecretOpener {
        fn open(&self, sealed: &str) -> Option<Zeroizing<String>> {
            self.0.lock().push(current().id());
            Some(Zeroizing::new(sealed.to_uppercase()))
        }
    }

    #[tokio::test]
    async fn secret_is_opened_once_and_on_another_thread() {
        let opener = Arc::new(SecretOpener(Mutex::default()));
        let secret = Secret::sealed("text", opener.clone());
        assert_eq!((open(&secret).await, open(&secret).await), ("TEXT", "TEXT"));
        let threads = opener.0.lock();
        assert_eq!(threads.len(), 1);
        assert_ne!(threads[0], current().id());
    }
}
