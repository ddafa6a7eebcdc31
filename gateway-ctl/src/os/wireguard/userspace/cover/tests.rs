//! Settings that enable and disable cover traffic.

use super::*;

#[test]
fn settings_that_stay_the_same_disturb_nothing() {
    let cover = Cover::new(CoverSettings::default());
    let mut follower = cover.settings.subscribe();
    cover.set(&CoverSettings::default());
    assert!(!follower.has_changed().expect("open"));
    cover.set(&CoverSettings { enabled: true, ..CoverSettings::default() });
    assert!(follower.has_changed().expect("open") && follower.borrow_and_update().enabled);
    assert!(cover.on.load(Ordering::Relaxed));
    cover.set(&CoverSettings::default());
    assert!(!cover.on.load(Ordering::Relaxed));
}
