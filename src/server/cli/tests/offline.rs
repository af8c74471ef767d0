//! `simpletuner auth …` while no server runs.

use crate::boot::offline::Offline;
use crate::store::sqlite::SqliteStore;

#[tokio::test]
async fn a_directory_without_a_database_stays_empty() {
    let home = tempfile::tempdir().expect("a directory");
    let refused = Offline::open(home.path(), None).await.err().expect("nothing is there");
    assert!(refused.code() == 69 && refused.sentence().contains("--data-dir"), "{refused:?}");
    assert_eq!(home.path().read_dir().expect("readable").count(), 0);
}

#[tokio::test]
async fn a_server_that_has_the_database_keeps_it() {
    let home = tempfile::tempdir().expect("a directory");
    let store = SqliteStore::open(home.path(), "c_1").await.expect("fresh");
    let refused = Offline::open(home.path(), None).await.err().expect("it is in use");
    assert!(refused.code() == 78 && refused.sentence().contains("another simpletuner server"), "{refused:?}");
    drop(store);
}
