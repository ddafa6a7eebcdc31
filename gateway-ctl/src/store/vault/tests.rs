//! Tests of the format against another implementation, and of damaged values.

use super::*;

/// Created with Python's `hashlib` and `cryptography` from this passphrase, salt 0 to 15, nonce 100 to 111.
const PASSPHRASE: &str = "correct horse – Batterie";
const FOREIGN: &str = "enc:AAECAwQFBgcICQoLDA0OD2RlZmdoaWprbG1ub/4Enmzyc3TbG6pPIS5Hy85G0A4n/Ciq2/gZ";

fn vault(passphrase: &str) -> Arc<Vault> {
    Arc::new(Vault::new(Zeroizing::new(passphrase.to_owned())))
}

#[test]
fn secrets_of_another_implementation_are_opened() {
    assert_eq!(vault(PASSPHRASE).open(FOREIGN).unwrap().as_str(), "hunter2 ü");
    assert!(vault("correct horse - Batterie").open(FOREIGN).is_none());
}

#[test]
fn each_value_has_a_salt_and_a_nonce_of_its_own() {
    let vault = vault(PASSPHRASE);
    let (one, two) = (vault.seal_text("same").unwrap(), vault.seal_text("same").unwrap());
    let bytes = |text: &str| STANDARD.decode(text.strip_prefix("enc:").unwrap()).unwrap();
    assert_eq!(bytes(&one).len(), SALT + NONCE_LEN + "same".len() + TAG);
    assert_ne!(bytes(&one)[..SALT], bytes(&two)[..SALT]);
    assert_ne!(bytes(&one)[SALT..SALT + NONCE_LEN], bytes(&two)[SALT..SALT + NONCE_LEN]);
    for sealed in [one, two] {
        assert_eq!(vault.open(&sealed).unwrap().as_str(), "same");
    }
    let long = "ü".repeat(100_000);
    assert_eq!(vault.open(&vault.seal_text(&long).unwrap()).unwrap().as_str(), long);
}

#[test]
fn damage_is_noticed() {
    let vault = vault(PASSPHRASE);
    let mut bytes = STANDARD.decode(FOREIGN.strip_prefix("enc:").unwrap()).unwrap();
    for place in [0, SALT, SALT + NONCE_LEN, bytes.len() - 1] {
        bytes[place] ^= 1;
        assert!(vault.open(&format!("enc:{}", STANDARD.encode(&bytes))).is_none(), "byte {place}");
        bytes[place] ^= 1;
    }
    for broken in ["", "enc:", "enc:****", "hunter2", &FOREIGN[..60], &FOREIGN.replace("enc:", "ENC:")] {
        assert!(vault.open(broken).is_none(), "{broken}");
    }
    assert_eq!(vault.derivations(), 4, "what is no sealed value costs no derivation");
}

#[test]
fn without_a_passphrase_nothing_is_sealed_or_opened() {
    let locked = Arc::new(Vault::locked());
    assert!(locked.open(FOREIGN).is_none() && locked.seal_text("x").is_none());
    assert!(locked.seal(&Secret::new("x")).is_none());
}
