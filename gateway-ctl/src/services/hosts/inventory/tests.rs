//! The inventory with its file.

use std::collections::BTreeSet;

use gateway_core::state_machines::hosts::Evidence;

use super::*;
use crate::services::encrypted_storage::fixture::StorageFixture;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

fn answer(number: u8, seconds: i64) -> Observation<'static> {
    let evidence = Evidence::Neighbour { address: [10, 0, 0, number].into(), is_confirmed: true };
    let mac = MacAddr([2, 0, 0, 0, 0, number]);
    Observation { interface: "lan0", mac, vlan: None, at: at(seconds), evidence }
}

fn opened(folder: &tempfile::TempDir) -> HostInventory {
    HostInventory::open(folder.path(), at(0))
}

fn observe(inventory: &HostInventory, number: u8, seconds: i64) {
    inventory.observe([answer(number, seconds)].into_iter(), &BTreeSet::new());
}

#[test]
fn hosts_survive_a_restart_and_no_erasure() {
    let folder = tempfile::tempdir().expect("a folder");
    let inventory = opened(&folder);
    observe(&inventory, 1, 0);
    observe(&inventory, 1, 50);
    inventory.save().expect("saved");
    let restarted = opened(&folder);
    let list = restarted.list();
    assert_eq!(list.hosts, inventory.list().hosts);
    assert_eq!((list.hosts[0].first_seen, list.hosts[0].last_seen), (at(0), at(50)));
    restarted.erase().expect("erased");
    assert!(restarted.list().hosts.is_empty() && restarted.present(at(50)).is_empty());
    assert!(!folder.path().join(FILE).exists());
    assert!(opened(&folder).list().hosts.is_empty());
}

#[test]
fn a_destroyed_state_folder_stays_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let inventory = opened(&folder);
    observe(&inventory, 1, 0);
    inventory.wipe(WipeLevel::Hard).expect("erased");
    observe(&inventory, 2, 1);
    store_at_end(&inventory);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_damaged_file_is_no_obstacle() {
    let folder = tempfile::tempdir().expect("a folder");
    for damaged in ["", "{\"hosts\": [{}]}", "[1]"] {
        std::fs::write(folder.path().join(FILE), damaged).expect("written");
        assert!(opened(&folder).list().hosts.is_empty());
    }
}

#[test]
fn the_verdict_counts_hosts_that_were_seen_in_the_last_day() {
    let folder = tempfile::tempdir().expect("a folder");
    let inventory = opened(&folder);
    observe(&inventory, 1, 0);
    let before = inventory.present(at(0));
    observe(&inventory, 1, 60);
    assert_eq!(inventory.present(at(60)), before, "only the time of the last answer is another");
    observe(&inventory, 2, 60);
    assert_eq!(inventory.present(at(60)).len(), 2);
    let id = inventory.list().of(MacAddr([2, 0, 0, 0, 0, 2])).next().expect("a host").id();
    assert!(inventory.forget(id) && !inventory.forget(id));
    assert_eq!(inventory.present(at(61)).len(), 1);
    assert!(inventory.present(at(100_000)).is_empty(), "nothing was seen for a day");
}

#[test]
fn hosts_move_into_the_encrypted_storage_and_join_those_that_were_seen_while_it_was_closed() {
    let mut fixture = StorageFixture::new();
    let inventory = HostInventory::open(&fixture.state_dir(), at(0));
    observe(&inventory, 1, 0);
    inventory.follow(&fixture.storage);
    inventory.save().expect("saved");
    let plain = fixture.state_dir().join(FILE);
    assert!(plain.exists());
    fixture.set_up(StorageContent::ObservedHosts, || inventory.follow(&fixture.storage));
    assert!(fixture.inside(FILE).exists() && !plain.exists());
    observe(&inventory, 2, 10);
    fixture.lock(|| inventory.follow(&fixture.storage));
    observe(&inventory, 3, 20);
    inventory.save().expect("nothing to write to");
    assert!(!plain.exists() && !fixture.inside(FILE).exists());

    fixture.reboot();
    let inventory = HostInventory::open(&fixture.state_dir(), at(30));
    assert!(inventory.list().hosts.is_empty());
    observe(&inventory, 2, 100);
    observe(&inventory, 4, 100);
    inventory.follow(&fixture.storage);
    fixture.unlock();
    inventory.follow(&fixture.storage);
    let seen: Vec<_> =
        inventory.list().hosts.iter().map(|host| (host.mac.octets()[5], host.first_seen)).collect();
    assert_eq!(seen, [(1, at(0)), (2, at(10)), (4, at(100))], "the third was in memory only");
    inventory.erase().expect("erased");
    assert!(!fixture.inside(FILE).exists());
}

#[test]
fn hosts_are_not_written_beside_a_storage_that_was_unmounted_by_force() {
    let fixture = StorageFixture::new();
    let inventory = HostInventory::open(&fixture.state_dir(), at(0));
    fixture.set_up(StorageContent::ObservedHosts, || inventory.follow(&fixture.storage));
    observe(&inventory, 1, 0);
    fixture.unmount_by_force();
    inventory.save().expect("nothing to write to");
    assert!(!fixture.inside(FILE).exists());
    inventory.follow(&fixture.storage);
    assert!(!fixture.inside(FILE).exists() && !fixture.state_dir().join(FILE).exists());
}
