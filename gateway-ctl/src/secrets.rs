//! Decryption of sealed secrets outside of the async worker threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gateway_model::Secret;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Limits key derivations to one at a time. Each takes milliseconds of a CPU (PBKDF2); the other CPUs stay free for
/// packets, queries and the API.
static TURN: Semaphore = Semaphore::const_new(1);

/// Returns the text of a secret, as [`Secret::expose`] does.
pub async fn open(secret: &Secret) -> &str {
    if !secret.is_opened()
        && let Ok(_turn) = TURN.acquire().await
    {
        // A clone shares the decrypted text.
        let secret = secret.clone();
        let _ = spawn_blocking(move || secret.is_readable()).await;
    }
    secret.expose()
}

/// Opens secrets for which a plan waits, on all CPUs. At a start, packets are blocked until that plan is active.
pub fn open_together<'a>(secrets: impl Iterator<Item = &'a Secret>) {
    open_on(thread::available_parallelism().map_or(1, NonZeroUsize::get), secrets);
}

fn open_on<'a>(threads: usize, secrets: impl Iterator<Item = &'a Secret>) {
    let sealed: Vec<&Secret> = secrets.filter(|secret| !secret.is_opened()).collect();
    // The caller opens a single one by its first use.
    if sealed.len() < 2 {
        return;
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads.min(sealed.len()) {
            scope.spawn(|| {
                while let Some(secret) = sealed.get(next.fetch_add(1, Ordering::Relaxed)) {
                    secret.is_readable();
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, Mutex};
    use std::thread::{ThreadId, current};

    use gateway_model::secret::Open;
    use zeroize::Zeroizing;

    use super::*;

    struct SecretOpener(Mutex<Vec<ThreadId>>);

    impl Open for SecretOpener {
        fn open(&self, sealed: &str) -> Option<Zeroizing<String>> {
            self.0.lock().unwrap().push(current().id());
            Some(Zeroizing::new(sealed.to_uppercase()))
        }
    }

    #[tokio::test]
    async fn secret_is_opened_once_and_on_another_thread() {
        let opener = Arc::new(SecretOpener(Mutex::default()));
        let secret = Secret::sealed("text", opener.clone());
        assert_eq!((open(&secret).await, open(&secret).await), ("TEXT", "TEXT"));
        let threads = opener.0.lock().unwrap();
        assert_eq!(threads.len(), 1);
        assert_ne!(threads[0], current().id());
    }

    /// Opens a secret only while it opens another one.
    struct PairOpener(Barrier);

    impl Open for PairOpener {
        fn open(&self, sealed: &str) -> Option<Zeroizing<String>> {
            self.0.wait();
            Some(Zeroizing::new(sealed.to_owned()))
        }
    }

    #[test]
    fn secrets_for_a_plan_are_opened_at_the_same_time() {
        let opener = Arc::new(PairOpener(Barrier::new(2)));
        let secrets = ["a", "b", "c", "d"].map(|text| Secret::sealed(text, opener.clone()));
        open_on(2, secrets.iter());
        assert!(secrets.iter().all(Secret::is_opened));
    }
}
