//! The audit log, and the alerts and anomalies that this version does not have.

use crate::table::Method::{Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported("the store, which is being wired", &[(Get, "/audit")]);
    t.unsupported(
        "alerts and anomaly detection, which this version does not have",
        &[
            (Get, "/alerts"),
            (Get, "/alerts/active"),
            (Post, "/alerts/{id}/acknowledge"),
            (Post, "/alerts/{id}/resolve"),
            (Get, "/alerts/rules"),
            (Put, "/alerts/rules/{id}"),
            (Get, "/alerts/webhook"),
            (Put, "/alerts/webhook"),
            (Post, "/alerts/webhook/test"),
            (Get, "/anomalies"),
            (Get, "/anomalies/stats"),
        ],
    );
}
