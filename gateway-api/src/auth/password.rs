//! Passwords: their rules, and their Argon2id hashes.
//!
//! A hash takes 19 MiB and tens of milliseconds by design. So few run at a time, outside the request threads, and the
//! queue is bounded. A flood of sign-ins is refused and takes neither memory nor CPU time from the gateway.

use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use gateway_model::{Problems, Secret, problem};
use tokio::sync::Semaphore;

use crate::blocking::blocking;
use crate::error::{ApiError, Code};

/// Minimum length in characters.
pub(crate) const MIN_LENGTH: usize = 12;
pub(crate) const MAX_LENGTH: usize = 256;

/// Maximum number of concurrent hash computations.
const HASH_WORKERS: usize = 2;
/// Maximum number of requests in the queue.
const MAX_WAITING: usize = 32;

/// Hash that no password has, with the parameters of real hashes. Compared if the user does not exist, so that the
/// response takes the same time.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$Z2F0ZXdheS1ub2JvZHk$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

#[derive(Debug)]
pub struct Passwords {
    workers: Semaphore,
    waiting: AtomicUsize,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { workers: Semaphore::new(HASH_WORKERS), waiting: AtomicUsize::new(0) }
    }
}

impl Passwords {
    pub async fn hash(&self, password: Secret) -> Result<Secret, ApiError> {
        self.work(move || hash(&password)).await?
    }

    /// Reports whether the password matches the hash. `None` takes the same time and returns false.
    pub async fn verify(&self, password: Secret, hash: Option<Secret>) -> Result<bool, ApiError> {
        self.work(move || {
            let known = hash.as_ref().map(Secret::expose).filter(|hash| !hash.is_empty());
            verify(&password, known.unwrap_or(DUMMY_HASH)) && known.is_some()
        })
        .await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let place = Permit::take(&self.waiting)?;
        let permit = self.workers.acquire().await.map_err(|closed| ApiError::internal(&closed))?;
        drop(place);
        let outcome = blocking(work).await;
        drop(permit);
        outcome
    }
}

/// Slot in the queue.
struct Permit<'a>(&'a AtomicUsize);

impl<'a> Permit<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, ApiError> {
        if waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            waiting.fetch_sub(1, Ordering::Relaxed);
            let mut error =
                ApiError::new(Code::LoginThrottled, "Too many sign-ins at a time; try again soon.");
            error.retry_after = Some(2);
            return Err(error);
        }
        Ok(Self(waiting))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the hash of a password with a fresh salt. Takes tens of milliseconds.
pub(crate) fn hash(password: &Secret) -> Result<Secret, ApiError> {
    match Argon2::default().hash_password(password.expose().as_bytes()) {
        Ok(hash) => Ok(Secret::new(hash.to_string())),
        Err(error) => Err(ApiError::internal(&std::io::Error::other(error.to_string()))),
    }
}

fn verify(password: &Secret, hash: &str) -> bool {
    match PasswordHash::new(hash) {
        Ok(parsed) => Argon2::default().verify_password(password.expose().as_bytes(), &parsed).is_ok(),
        Err(_) => {
            tracing::error!("failed to read a stored password hash: the user cannot sign in");
            false
        }
    }
}

/// Reports the errors of a new password to `problems`.
pub(crate) fn check(path: &str, password: &Secret, username: &str, problems: &mut Problems) {
    let length = password.expose().chars().count();
    if length == 0 {
        problems.required(path);
    } else if length < MIN_LENGTH {
        problems.add(
            problem::code::RANGE,
            path,
            format!("The password needs at least {MIN_LENGTH} characters."),
        );
    } else if length > MAX_LENGTH {
        problems.add(
            problem::code::RANGE,
            path,
            format!("The password may have at most {MAX_LENGTH} characters."),
        );
    } else if password.expose().to_lowercase() == username.to_lowercase() {
        problems.add(problem::code::FORMAT, path, "The password must not be the user name.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_its_own_hash_only_and_no_two_hashes_are_alike() {
        let password = Secret::new("correct horse battery");
        let (one, two) = (hash(&password).expect("hash"), hash(&password).expect("hash"));
        assert!(one.expose().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", one.expose());
        assert_ne!(one.expose(), two.expose());
        assert!(verify(&password, one.expose()) && verify(&password, two.expose()));
        assert!(!verify(&Secret::new("correct horse batterx"), one.expose()));
        assert!(!verify(&password, "not a hash"));
    }

    #[tokio::test]
    async fn unknown_users_take_as_long_as_wrong_passwords() {
        assert!(PasswordHash::new(DUMMY_HASH).is_ok(), "it must be computed, not refused as malformed");
        let passwords = Passwords::default();
        assert!(!passwords.verify(Secret::new(""), None).await.expect("verified"));
        assert!(!passwords.verify(Secret::new("x"), Some(Secret::default())).await.expect("verified"));
    }

    #[tokio::test]
    async fn waiting_requests_are_limited_and_permits_are_returned() {
        let passwords = Passwords::default();
        let all: Vec<Permit> =
            (0..MAX_WAITING).map(|_| Permit::take(&passwords.waiting).expect("a place")).collect();
        let refused = passwords.hash(Secret::new("x")).await.expect_err("the queue is full");
        assert_eq!((refused.code, refused.retry_after), (Code::LoginThrottled, Some(2)));
        drop(all);
        assert!(passwords.hash(Secret::new("x")).await.is_ok());
        assert_eq!(passwords.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn short_long_and_obvious_passwords_are_refused() {
        let wrong = |password: &str| {
            let mut problems = Problems::new();
            check("password", &Secret::new(password), "administrator", &mut problems);
            !problems.is_empty()
        };
        for bad in ["", "eleven char", &"x".repeat(257), "Administrator"] {
            assert!(wrong(bad), "{bad}");
        }
        for good in ["twelve chars", "žluťoučký kůň", &"x".repeat(256)] {
            assert!(!wrong(good), "{good}");
        }
    }
}
