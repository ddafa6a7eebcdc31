//! A TPM that opens the encrypted storage at the start of the daemon, and refuses when the machine was changed.

use std::fs::File;
use std::io::{Read as _, Write as _};

use gateway_tests::daemon::Api;
use gateway_tests::testbed::Testbed;
use serde_json::{Value, json};

use super::daemon::{PASSPHRASE, set_up, status, unlock, wait_for_state};

/// PCRs of the key. The test extends the second one, as another boot loader would.
const PCRS: [u32; 2] = [7, 12];

/// Extends a PCR by a digest (TPM2_PCR_Extend, TPM 2.0 Library, part 3, section 22.2), with the empty authorisation.
fn extend(pcr: u32) {
    let mut command = vec![0x80, 0x02];
    command.extend([0; 4]);
    command.extend(0x0000_0182_u32.to_be_bytes());
    command.extend(pcr.to_be_bytes());
    // One session by password: its length, TPM_RS_PW, no nonce, no attributes, no password.
    command.extend(9_u32.to_be_bytes());
    command.extend(0x4000_0009_u32.to_be_bytes());
    command.extend([0; 5]);
    // One digest of SHA-256.
    command.extend(1_u32.to_be_bytes());
    command.extend(0x000b_u16.to_be_bytes());
    command.extend([0xa5; 32]);
    let length = u32::try_from(command.len()).expect("short").to_be_bytes();
    command[2..6].copy_from_slice(&length);
    let mut device = File::options().read(true).write(true).open("/dev/tpmrm0").expect("a TPM");
    device.write_all(&command).expect("written");
    let mut answer = [0; 256];
    let read = device.read(&mut answer).expect("an answer");
    assert!(read >= 10 && answer[6..10] == [0; 4], "{:?}", &answer[..read]);
}

fn seal(api: &Api, passphrase: &str, pcrs: &[u32]) -> (u16, Value) {
    let body = json!({"passphrase": passphrase, "pcrs": pcrs});
    let reply = api.send("PUT", "/storage/encrypted/tpm2-key", Some(&body)).expect("an answer");
    (reply.status, reply.body)
}

fn sealed_slots(status: &Value) -> Vec<Value> {
    let slots = status["keyslots"].as_array().expect("slots");
    slots.iter().filter(|slot| slot["is_tpm2"] == true).map(|slot| slot["tpm2_pcrs"].clone()).collect()
}

#[test]
#[ignore = "runs inside the guest"]
fn a_tpm_opens_the_storage_of_an_unchanged_machine_only() {
    let mut testbed = Testbed::start().expect("a scene");
    let tpm2 = status(testbed.api())["tpm2"].clone();
    assert_eq!((&tpm2["supported"], &tpm2["opens_at_start"]), (&json!(true), &json!(false)), "{tpm2}");
    set_up(&testbed);
    let api = testbed.api();
    assert_eq!(seal(api, "not the passphrase", &PCRS).0, 422);
    assert_eq!(seal(api, PASSPHRASE, &[24]).0, 422);
    let (code, sealed) = seal(api, PASSPHRASE, &PCRS);
    assert_eq!(code, 200, "{sealed}");
    let sealed = status(api);
    assert_eq!((sealed_slots(&sealed), &sealed["tpm2"]["opens_at_start"]), (vec![json!(PCRS)], &json!(true)));

    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("the daemon");
    wait_for_state(testbed.api(), "mounted");
    assert_eq!(status(testbed.api())["error"], Value::Null);

    extend(PCRS[1]);
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("the daemon");
    wait_for_state(testbed.api(), "locked");
    let locked = status(testbed.api());
    let error = locked["error"].as_str().unwrap_or_default();
    assert!(error.contains("the TPM does not open the storage") && error.contains("passphrase"), "{locked}");
    println!("measured refusal: {error}");
    assert_eq!(unlock(testbed.api(), PASSPHRASE), 200);

    // Sealed to the machine as it is now, in place of the earlier key.
    assert_eq!(seal(testbed.api(), PASSPHRASE, &PCRS).0, 200);
    assert_eq!(sealed_slots(&status(testbed.api())).len(), 1);
    testbed.daemon.terminate().expect("ended");
    testbed.daemon.start().expect("the daemon");
    wait_for_state(testbed.api(), "mounted");

    let removed = testbed.api().delete("/storage/encrypted/tpm2-key").expect("removed");
    assert_eq!((sealed_slots(&removed), removed["keyslots"].as_array().map(Vec::len)), (vec![], Some(1)));
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("the daemon");
    wait_for_state(testbed.api(), "locked");
    assert_eq!(unlock(testbed.api(), PASSPHRASE), 200);
}
