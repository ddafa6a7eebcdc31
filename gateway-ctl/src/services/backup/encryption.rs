//! Encrypted exports: age files (age-encryption.org/v1) with a passphrase, which `age -d` decrypts too.
//!
//! A format of our own would need trust without review, and a backup must open without this gateway. A file whose work
//! factor exceeds 2^18 is refused, because it would exhaust a small machine.

use std::io::{self, BufReader, Read, Write};

use age::armor::{ArmoredReader, ArmoredWriter, Format};
use age::scrypt::{Identity, Recipient};
use age::secrecy::SecretString;
use age::{Decryptor, Encryptor};

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

/// Encrypts what `write` writes while it writes it.
pub fn seal_stream(
    out: impl Write,
    passphrase: &str,
    form: Form,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut recipient = Recipient::new(SecretString::from(passphrase.to_owned()));
    recipient.set_work_factor(WORK);
    let encryptor = Encryptor::with_recipients(std::iter::once(&recipient as &dyn age::Recipient));
    let format = match form {
        Form::Binary => Format::Binary,
        Form::Armored => Format::AsciiArmor,
    };
    let armored = ArmoredWriter::wrap_output(out, format)?;
    let mut sealed = encryptor.map_err(io::Error::other)?.wrap_output(armored)?;
    write(&mut sealed)?;
    sealed.finish()?.finish()?.flush()
}

/// Decrypts either form while it is read. Damage behind what was read already is an error of a later read, so the result
/// counts only after its end was reached.
pub fn open_stream<'a>(sealed: impl Read + 'a, passphrase: &str) -> Result<Box<dyn Read + 'a>, Error> {
    let mut identity = Identity::new(SecretString::from(passphrase.to_owned()));
    identity.set_max_work_factor(MOST_WORK);
    let decryptor = Decryptor::new_buffered(ArmoredReader::new(BufReader::new(sealed)));
    let opened = decryptor.and_then(|file| file.decrypt(std::iter::once(&identity as &dyn age::Identity)));
    opened.map(|plain| Box::new(plain) as Box<dyn Read>).map_err(|_| Error::Decrypt)
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
    fn streams_are_the_same_files_and_damage_at_the_end_is_found() {
        let plain: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        for form in [Form::Binary, Form::Armored] {
            let mut sealed = Vec::new();
            seal_stream(&mut sealed, PASSPHRASE, form, |out| {
                plain.chunks(1000).try_for_each(|part| out.write_all(part))
            })
            .unwrap();
            assert_eq!(open(&sealed, PASSPHRASE).unwrap(), plain);
            let whole = |sealed: &[u8]| {
                let mut opened = Vec::new();
                open_stream(sealed, PASSPHRASE).unwrap().read_to_end(&mut opened).map(|_| opened)
            };
            assert_eq!(whole(&seal(&plain, PASSPHRASE, form).unwrap()).unwrap(), plain);
            assert!(whole(&sealed[..sealed.len() - 100]).is_err());
            assert!(open_stream(&sealed[..], "another passphrase").is_err());
        }
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
