//! Encrypted exports: age files (age-encryption.org/v1) with a passphrase, which `age -d` decrypts too.

use age::scrypt::{Identity, Recipient};
use age::secrecy::SecretString;

/// Work factor of the key derivation (scrypt), as a power of two: 64 MiB and a fraction of a second on small
/// machines.
const WORK: u8 = 16;
/// Maximum work factor of a file. A file that demands more is treated as an attack on the gateway's memory.
const MOST_WORK: u8 = 18;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the export cannot be encrypted")]
    Encrypt(#[source] age::EncryptError),
    /// Wrong passphrase, a damaged file, or no age file at all. The format does not distinguish them.
    #[error("the passphrase does not open this file, or the file is damaged")]
    Decrypt,
}

/// Format of an encrypted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Binary,
    /// Text that survives copy and paste.
    Armored,
}

/// Encrypts. Takes a fraction of a second on purpose.
pub fn seal(plain: &[u8], passphrase: &str, form: Form) -> Result<Vec<u8>, Error> {
    let mut recipient = Recipient::new(SecretString::from(passphrase.to_owned()));
    recipient.set_work_factor(WORK);
    match form {
        Form::Binary => age::encrypt(&recipient, plain).map_err(Error::Encrypt),
        Form::Armored => {
            age::encrypt_and_armor(&recipient, plain).map(String::into_bytes).map_err(Error::Encrypt)
        }
    }
}

/// Decrypts either form. Returns no part of a damaged file.
pub fn open(sealed: &[u8], passphrase: &str) -> Result<Vec<u8>, Error> {
    let mut identity = Identity::new(SecretString::from(passphrase.to_owned()));
    identity.set_max_work_factor(MOST_WORK);
    age::decrypt(&identity, sealed).map_err(|_| Error::Decrypt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSPHRASE: &str = "correct horse battery";

    #[test]
    fn both_forms_open_with_their_passphrase_alone() {
        for form in [Form::Binary, Form::Armored] {
            let sealed = seal(b"secret text", PASSPHRASE, form).unwrap();
            assert!(!sealed.windows(6).any(|window| window == b"secret"));
            assert_eq!(open(&sealed, PASSPHRASE).unwrap(), b"secret text");
            assert!(open(&sealed, "another passphrase").is_err());
        }
        let sealed = seal(b"x", PASSPHRASE, Form::Binary).unwrap();
        assert!(sealed.starts_with(b"age-encryption.org/v1\n-> scrypt "));
    }

    #[test]
    fn damage_anywhere_is_found() {
        let sealed = seal(&[7; 300], PASSPHRASE, Form::Binary).unwrap();
        for place in [0, 30, 60, sealed.len() / 2, sealed.len() - 1] {
            let mut damaged = sealed.clone();
            damaged[place] ^= 1;
            assert!(open(&damaged, PASSPHRASE).is_err(), "byte {place}");
        }
        for cut in [0, 10, sealed.len() - 1] {
            assert!(open(&sealed[..cut], PASSPHRASE).is_err(), "cut at {cut}");
        }
        assert!(open(b"not a file of age", PASSPHRASE).is_err());
    }
}
