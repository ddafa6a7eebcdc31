//! Target: records of the history of plans.

use gateway_core::plan_history::{Parts, PlanInputs, PlanRecord, decode_parts, encode_part};
use jiff::Timestamp;

/// Reads the bytes as a record, and its payload as parts. Checks that both are the same when they are written again, and that
/// parts are inputs or refused.
pub fn plan_record(data: &[u8]) {
    let payload = match PlanRecord::decode(data) {
        Some(record) => {
            let length = record.length();
            assert!(length <= data.len(), "no record goes beyond the bytes");
            let written = record.encode().expect("as long as before");
            assert_eq!(PlanRecord::decode(&written), Some(record));
            record.payload
        }
        None => data,
    };
    let Some(parts) = decode_parts(payload) else { return };
    let written: Option<Vec<_>> = parts.iter().map(encode_part).collect();
    assert_eq!(written.map(|written| written.concat()).as_deref(), Some(payload));
    let mut all = Parts::new();
    parts.into_iter().for_each(|part| part.apply(&mut all));
    if let Ok(inputs) = PlanInputs::of_parts(&all, Timestamp::UNIX_EPOCH) {
        let again = inputs.parts_since(None);
        assert!(inputs.parts_since(Some(&inputs)).is_empty());
        let mut restored = Parts::new();
        again.into_iter().for_each(|part| part.apply(&mut restored));
        let restored = PlanInputs::of_parts(&restored, Timestamp::UNIX_EPOCH).expect("parts of inputs");
        assert_eq!((restored.facts, restored.network), (inputs.facts, inputs.network));
    }
}
