//! Target: records of the flow log.

use gateway_core::flow_log::{
    FlowRecord, TopKey, TopTable, UsageRow, encode, encode_usage, from_columns, rollup_views, to_columns,
    usage_views, views,
};

/// Reads the bytes as a block of records, and of usage. Checks that each record is the same when it is encoded again.
pub fn flow_record(data: &[u8]) {
    let mut length = 0;
    for view in views(data) {
        length += view.length();
        let _ = (view.time(), view.flow_id());
        let Some(record) = view.record() else { continue };
        let mut bytes = Vec::new();
        encode(&mut bytes, &record);
        let again: Vec<Option<FlowRecord>> = views(&bytes).map(|view| view.record()).collect();
        assert_eq!(again, [Some(record)]);
    }
    assert!(length <= data.len(), "no record goes beyond the bytes");
    if let Some(columns) = to_columns(data) {
        let records = from_columns(&columns).expect("columns");
        let read = |bytes: &[u8]| views(bytes).map(|view| view.record()).collect::<Vec<_>>();
        assert_eq!(read(&records), read(data));
    }
    if let Some(records) = from_columns(data) {
        assert_eq!(views(&records).map(|view| view.length()).sum::<usize>(), records.len());
    }
    for rollup in rollup_views(data) {
        let is_one = rollup.span().is_some();
        for by in TopKey::ALL {
            let mut table = TopTable::new(*by);
            let is_added = rollup.add_to(&mut table).is_some();
            assert!(is_added || table.rows(1) == (Vec::new(), 0), "{is_one}: a part of a rollup was added");
        }
    }
    for row in usage_views(data).filter_map(|view| view.row()) {
        let mut bytes = Vec::new();
        encode_usage(&mut bytes, &row);
        let again: Vec<Option<UsageRow>> = usage_views(&bytes).map(|view| view.row()).collect();
        assert!(
            again
                .iter()
                .flatten()
                .all(|again| again.usage == row.usage && again.key.device == row.key.device)
        );
        assert_eq!(again.len(), 1);
    }
}
