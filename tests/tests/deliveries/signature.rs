//! Signatures, as the reference implementation of Standard Webhooks in Python verifies them.

use std::path::Path;
use std::process::{Command, Stdio};

use gateway_tests::webhook_receiver::{Recorded, WebhookReceiver};
use serde_json::json;

use super::testbed::Testbed;

/// Reads secret, headers and body as JSON, and prints whether the signature is valid.
const VERIFY: &str = "
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
given = json.load(sys.stdin)
try:
    Webhook(given['secret']).verify(given['body'].encode(), given['headers'], json_parse=False)
    print('valid')
except WebhookVerificationError as error:
    print(error)
";

fn verify(request: &Recorded, secret: &str) -> String {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/schemathesis/bin/python");
    assert!(python.is_file(), "no environment of Python: run `cargo xtask setup`");
    let headers: serde_json::Map<_, _> =
        request.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let body = String::from_utf8(request.body.clone()).expect("a text");
    let given = json!({"secret": secret, "headers": headers, "body": body});
    let mut command = Command::new(python);
    command.args(["-c", VERIFY]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("python starts");
    serde_json::to_writer(child.stdin.take().expect("a pipe"), &given).expect("written");
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a text").trim().to_owned()
}

#[test]
fn signatures_of_every_format_are_verified_by_the_reference_implementation() {
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    for format in ["alertmanager", "alertmanager-v2", "json", "ntfy", "slack"] {
        testbed.configure(&receiver.url("/"), json!({"format": format, "secret": SECRET}));
        assert_eq!(testbed.test_webhook()["delivered"], true, "{format}");
        let request = receiver.requests().pop().expect("a request");
        assert_eq!(verify(&request, SECRET), "valid", "{format}");
        let mut forged = request.clone();
        forged.body.push(b' ');
        assert_eq!(verify(&forged, SECRET), "No matching signature found", "{format}");
        assert_ne!(verify(&request, "whsec_AAAAr8GKYqrTwjUPD8ILPZIo2LaLaSw="), "valid", "{format}");
    }
    // A text is the key itself.
    testbed.configure(&receiver.url("/"), json!({"secret": "correct horse battery"}));
    testbed.test_webhook();
    let request = receiver.requests().pop().expect("a request");
    assert_eq!(verify(&request, "whsec_Y29ycmVjdCBob3JzZSBiYXR0ZXJ5"), "valid");
}
