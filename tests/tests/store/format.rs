//! Sealed values against another implementation, in both directions: key derivation by Python, AES by OpenSSL, and the
//! mode implemented explicitly.

use std::io::Write;
use std::process::{Command, Stdio};

use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::{AuditTicket, Store};
use gateway_model::{EditError, Secret};
use redb::ReadableTable;

const SCRIPT: &str = r#"
import base64, hashlib, hmac, os, subprocess, sys

def aes(key, blocks):
    command = ["openssl", "enc", "-aes-256-ecb", "-nopad", "-K", key.hex()]
    return subprocess.run(command, input=b"".join(blocks), stdout=subprocess.PIPE, check=True).stdout

def times(x, y):
    z = 0
    for bit in range(127, -1, -1):
        if x >> bit & 1:
            z ^= y
        y = (y >> 1) ^ (0xE1 << 120 if y & 1 else 0)
    return z

def gcm(key, nonce, text, sealed):
    """AES-256-GCM as NIST SP 800-38D has it: the text turned, and the tag over its sealed form."""
    count = (len(text) + 15) // 16
    blocks = [bytes(16)] + [nonce + n.to_bytes(4, "big") for n in range(1, count + 2)]
    stream = aes(key, blocks)
    turned = bytes(a ^ b for a, b in zip(text, stream[32:]))
    data = text if sealed else turned
    y, h = 0, int.from_bytes(stream[:16], "big")
    padded = data + bytes(-len(data) % 16) + (8 * len(data)).to_bytes(16, "big")
    for at in range(0, len(padded), 16):
        y = times(y ^ int.from_bytes(padded[at:at + 16], "big"), h)
    return turned, (y ^ int.from_bytes(stream[16:32], "big")).to_bytes(16, "big")

def key(passphrase, salt):
    return hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, 100000, 32)

what, passphrase, value = (line.rstrip("\n") for line in sys.stdin)
if what == "open":
    assert value.startswith("enc:"), value
    raw = base64.b64decode(value[4:], validate=True)
    text, tag = gcm(key(passphrase, raw[:16]), raw[16:28], raw[28:-16], True)
    assert hmac.compare_digest(tag, raw[-16:]), "the tag is another"
    print(text.decode())
else:
    salt, nonce = os.urandom(16), os.urandom(12)
    text, tag = gcm(key(passphrase, salt), nonce, value.encode(), False)
    print("enc:" + base64.b64encode(salt + nonce + text + tag).decode())
"#;

fn python(what: &str, passphrase: &str, value: &str) -> String {
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    let input = format!("{what}\n{passphrase}\n{value}\n");
    python.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("python3 reads");
    let output = python.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "python3 and openssl: {}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
}

#[test]
fn another_implementation_and_the_store_open_each_others_secrets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("gateway.redb");
    let clear = "a secret – with ümlauts, \"quotes\" and 鍵";
    let store = Store::open(&path, SystemClock::shared()).expect("opens");
    let set = |key: &str, text: &str| {
        let ticket = AuditTicket::system("set", "setting");
        let done = store.commit(ticket, |draft| {
            draft.set_secret(key, Secret::new(text));
            Ok::<_, EditError>(())
        });
        done.expect("stored");
    };
    set("alerts.webhook.secret", clear);
    set("test.other", "the other one");
    let sealed = store.current().settings.secret("alerts.webhook.secret");
    let sealed = sealed.sealed_text().expect("it is sealed").to_owned();
    drop(store);
    let kept = std::fs::read_to_string(folder.path().join("secrets.passphrase")).expect("the fallback file");
    let passphrase = kept.trim();
    assert_eq!(python("open", passphrase, &sealed), clear);

    let foreign = python("seal", passphrase, "made elsewhere");
    {
        let db = redb::Database::open(&path).expect("the file opens");
        let txn = db.begin_write().expect("a transaction");
        {
            let definition = redb::TableDefinition::<&str, &[u8]>::new("settings");
            let mut rows = txn.open_table(definition).expect("the settings");
            let row = rows.get("test.other").expect("read").expect("there").value().to_vec();
            let mut row: serde_json::Value = serde_json::from_slice(&row).expect("JSON");
            row["secret"] = foreign.into();
            rows.insert("test.other", row.to_string().as_bytes()).expect("written");
        }
        txn.commit().expect("committed");
    }
    let store = Store::open(&path, SystemClock::shared()).expect("opens again");
    assert_eq!(store.current().settings.secret("test.other").expose(), "made elsewhere");
}
