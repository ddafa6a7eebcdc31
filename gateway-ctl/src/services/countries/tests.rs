//! Files that are no database, and files that are gone.

use std::fs;

use super::*;

#[test]
fn a_file_that_is_no_database_is_an_error_and_no_country_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("countries.mmdb");
    let database = CountryDatabase::default();
    database.update(Some(&file));
    assert!(database.error().is_some_and(|error| error.contains("cannot be read")), "{:?}", database.error());
    fs::write(&file, "no database").expect("written");
    database.update(Some(&file));
    assert!(database.error().is_some_and(|error| error.contains("no MaxMind DB")), "{:?}", database.error());
    assert!(!database.is_open());
    assert_eq!(database.country([192, 0, 2, 1].into()), None);
    database.update(None);
    assert_eq!(database.error(), None);
}
