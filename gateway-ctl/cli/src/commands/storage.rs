//! Commands for the encrypted storage. Passphrases come in a file or by standard input, never on the command line.

use super::build::{BODY, command, delete, get, post, put};
use crate::grammar::{Group, Kind};

pub(super) fn kind() -> Kind {
    let about = "Encrypted storage of records that name hosts";
    Kind {
        name: "storage",
        group: Group::Operations,
        about,
        commands: vec![
            command("", get("/storage/encrypted"), about).examples(["storage", "storage | jq -r .state"]),
            command("setup", post("/storage/encrypted/setup"), "Set the encrypted storage up")
                .operands([BODY])
                .examples(["storage setup setup.json", "storage setup setup.json | jq .set_up"]),
            command("unlock", post("/storage/encrypted/unlock"), "Open the encrypted storage")
                .operands([BODY])
                .examples(["storage unlock passphrase.json", "storage unlock passphrase.json | jq .mounted"]),
            command("lock", post("/storage/encrypted/lock"), "Close the encrypted storage")
                .examples(["storage lock", "storage lock | jq -r '.waiting[]'"]),
            command("passphrase", put("/storage/encrypted/passphrase"), "Change the passphrase")
                .operands([BODY])
                .examples([
                    "storage passphrase change.json",
                    "storage passphrase change.json | jq .keyslots",
                ]),
            command("store-key", put("/storage/encrypted/stored-key"), "Open the storage at each start")
                .operands([BODY])
                .examples([
                    "storage store-key passphrase.json",
                    "storage store-key passphrase.json | jq .has_stored_key",
                ]),
            command("remove-key", delete("/storage/encrypted/stored-key"), "Remove the stored key")
                .examples(["storage remove-key", "storage remove-key | jq .keyslots"]),
            command(
                "seal-key",
                put("/storage/encrypted/tpm2-key"),
                "Open the storage by a TPM2 at each start",
            )
            .operands([BODY])
            .examples(["storage seal-key passphrase.json", "storage seal-key passphrase.json | jq .tpm2"]),
            command(
                "remove-sealed-key",
                delete("/storage/encrypted/tpm2-key"),
                "Remove the key that a TPM2 seals",
            )
            .examples(["storage remove-sealed-key", "storage remove-sealed-key | jq .keyslots"]),
            command(
                "teardown",
                post("/storage/encrypted/teardown"),
                "Destroy the encrypted storage, which must be locked",
            )
            .examples(["storage teardown", "storage teardown | jq -r .state"]),
        ],
    }
}
