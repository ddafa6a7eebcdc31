//! Commands for Bluetooth.

use super::build::{column, command, delete, get, list, operand, post, put};
use crate::grammar::{Arity, Column, Command, Flag, Group, Kind, ParameterKind};

const DEVICES: &[Column] = &[
    column("MAC", "mac"),
    column("NAME", "name"),
    column("PAIRED", "paired"),
    column("TRUSTED", "trusted"),
    column("CONNECTED", "connected"),
    column("RSSI", "rssi"),
    column("CLASS", "class"),
];

const SCAN: &[Flag] = &[Flag {
    name: "seconds",
    value: "n",
    field: "duration_sec",
    integer: true,
    required: false,
    about: "Time of the scan, 300 at most",
}];

const PAIR: &[Flag] = &[
    Flag {
        name: "passkey",
        value: "digits",
        field: "passkey",
        integer: false,
        required: false,
        about: "Passkey that both devices show, to confirm the pairing",
    },
    Flag {
        name: "pin",
        value: "pin",
        field: "pin",
        integer: false,
        required: false,
        about: "PIN of the device, or passkey that only the device shows",
    },
];

pub(super) fn kind() -> Kind {
    let mac = || operand("mac", ParameterKind::Text, Arity::One);
    let mut commands = vec![
        command("status", get("/bluetooth/status"), "Adapter, pairing and networks")
            .examples(["bluetooth status", "bluetooth status | jq .pan"]),
        command("enable", post("/bluetooth/enable"), "Switch the adapter on")
            .examples(["bluetooth enable", "bluetooth enable | jq .powered"]),
        command("disable", post("/bluetooth/disable"), "Switch the adapter off")
            .examples(["bluetooth disable", "bluetooth disable | jq .powered"]),
        command("name", put("/bluetooth/name"), "Name the adapter")
            .operands([operand("name", ParameterKind::Text, Arity::One)])
            .examples(["bluetooth name gateway", "bluetooth name gateway | jq -r .adapter.name"]),
        command("scan", post("/bluetooth/scan"), "Scan for devices")
            .flags(SCAN)
            .examples(["bluetooth scan", "bluetooth scan --seconds 60"]),
        list(get("/bluetooth/devices"), "Paired, trusted and connected devices", DEVICES)
            .verb("devices")
            .examples(["bluetooth devices", "bluetooth devices | cut -f1,2"]),
        list(get("/bluetooth/nearby"), "Other devices, the nearest first", DEVICES)
            .verb("nearby")
            .examples(["bluetooth nearby", "bluetooth nearby | cut -f1,6"]),
        command("rssi", get("/bluetooth/rssi/{mac}"), "Strength of the signal of a device")
            .operands([mac()])
            .examples(["bluetooth rssi 00:16:3e:00:00:01", "bluetooth rssi 00:16:3e:00:00:01 | jq .rssi"]),
        command("ids", get("/bluetooth/ids"), "Detection of intrusions")
            .examples(["bluetooth ids", "bluetooth ids | jq '.events[0]'"]),
        command("pair", post("/bluetooth/pair"), "Pair with a device, or confirm a pairing")
            .operands([mac()])
            .flags(PAIR)
            .examples([
                "bluetooth pair 00:16:3e:00:00:01",
                "bluetooth pair 00:16:3e:00:00:01 --passkey 123456",
            ]),
        command("remove", delete("/bluetooth/devices/{mac}"), "Forget a device").operands([mac()]).examples(
            ["bluetooth remove 00:16:3e:00:00:01", "bluetooth remove 00:16:3e:00:00:01 | jq .deleted"],
        ),
    ];
    commands.extend(networks());
    Kind {
        name: "bluetooth",
        group: Group::Operations,
        about: "Bluetooth adapter and its networks",
        commands,
    }
}

fn networks() -> [Command; 4] {
    [
        command("connect", post("/bluetooth/pan/connect"), "Join the network of the phone now")
            .examples(["bluetooth connect", "bluetooth connect | jq .pan"]),
        command("disconnect", post("/bluetooth/pan/disconnect"), "Leave the network of the phone")
            .examples(["bluetooth disconnect", "bluetooth disconnect | jq .pan"]),
        command("nap-start", post("/bluetooth/nap/start"), "Offer a network to devices")
            .examples(["bluetooth nap-start", "bluetooth nap-start | jq -r .nap.bridge"]),
        command("nap-stop", post("/bluetooth/nap/stop"), "End the network for devices")
            .examples(["bluetooth nap-stop", "bluetooth nap-stop | jq .nap.active"]),
    ]
}
