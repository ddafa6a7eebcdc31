//! Target: records of the flow log.

use gateway_core::flow_log::{FlowRecord, encode, views};

/// Reads the bytes as a block of records. Checks that each record is the same when it is encoded again.
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
}
