//! The inventory with its file.

use std::collections::BTreeSet;

use gateway_core::state_machines::hosts::Evidence;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

fn answer(number: u8, seconds: i64) -> Observation<'static> {
    let evidence = Evidence::Neighbour { address: [10, 0, 0, number].into(), is_confirmed: true };
    let mac = MacAddr([2, 0, 0, 0, 0, number]);
    Observation { interface: "lan0", mac, vlan: None, at: at(seconds), evidence }
}

fn observe(inventory: &HostInventory, number: u8, seconds: i64) {
    inventory.observe([answer(number, seconds)].into_iter(), &BTreeSet::new());
    inventory.publish(at(seconds));
}

#[test]
fn hosts_survive_a_restart_and_no_erasure() {
    let folder = tempfile::tempdir().expect("a folder");
    let inventory = HostInventory::stored(folder.path());
    observe(&inventory, 1, 0);
    observe(&inventory, 1, 50);
    inventory.save().expect("saved");
    let restarted = HostInventory::stored(folder.path());
    let list = restarted.list();
    assert_eq!(list.hosts, inventory.list().hosts);
    assert_eq!((list.hosts[0].first_seen, list.hosts[0].last_seen), (at(0), at(50)));
    restarted.erase().expect("erased");
    assert!(restarted.list().hosts.is_empty() && restarted.present().borrow().is_empty());
    assert!(!folder.path().join(FILE).exists());
    assert!(HostInventory::stored(folder.path()).list().hosts.is_empty());
}

#[test]
fn a_destroyed_state_folder_stays_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let inventory = HostInventory::stored(folder.path());
    observe(&inventory, 1, 0);
    inventory.silence();
    store_at_end(&inventory);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_damaged_file_is_no_obstacle() {
    let folder = tempfile::tempdir().expect("a folder");
    for damaged in ["", "{\"hosts\": [{}]}", "[1]"] {
        std::fs::write(folder.path().join(FILE), damaged).expect("written");
        assert!(HostInventory::stored(folder.path()).list().hosts.is_empty());
    }
}

#[test]
fn readers_wake_only_if_other_hosts_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let inventory = HostInventory::stored(folder.path());
    let mut present = inventory.present();
    observe(&inventory, 1, 0);
    assert!(present.has_changed().expect("open"));
    let hosts = present.borrow_and_update().clone();
    assert_eq!(hosts.len(), 1);
    observe(&inventory, 1, 60);
    assert!(!present.has_changed().expect("open"), "only the time of the last answer is another");
    observe(&inventory, 2, 60);
    assert!(present.has_changed().expect("open"));
    let id = inventory.list().of(MacAddr([2, 0, 0, 0, 0, 2])).next().expect("a host").id();
    assert!(inventory.forget(id, at(61)) && !inventory.forget(id, at(61)));
    assert_eq!(present.borrow_and_update().len(), 1);
    inventory.publish(at(100_000));
    assert!(present.borrow_and_update().is_empty(), "nothing was seen for a day");
}
