//! Keys, values and records of the BPF maps. Every policy key starts with the slot of the plan it
//! belongs to, so that two plans lie side by side in one map and one word says which is live.

mod action;
mod address;
mod answer;
mod domain;
mod event;
mod flow;
mod mark;
mod policy;

pub use action::{ActionValue, CHOICE_SLOTS, Choice, ChoiceKind, PROXY_TAKES_UDP, Sticky};
pub use address::{Address, Mac};
pub use answer::{ANSWER, AnswerGiven, AnswerKey, AnswerValue, MESSAGE_ID, QUESTION, TTLS};
pub use domain::{ClientKey, DomainKey, DomainValue};
pub use event::{COUNTER_PAGE, CounterPage, CounterValue, EventRecord, counter_place};
pub use flow::{FlowKey, FlowValue, Fragment, MOMENT_SHIFT, ShortFlowKey};
pub use mark::Mark;
pub use policy::{
    AddressKey, AuthorisedKey, DeviceValue, InterfaceKey, InterfaceValue, LIST_SHIFT, LISTS, LocalKind,
    LocalValue, MacKey, PREFIX_BASE, PlanValue, PortPrefix4, PortPrefix6, Prefix4, Prefix6, VlanKey,
    device_flags, list_of_slot, plan_flags, slot_of_list,
};

/// Number of a plan slot: 0 is the resting state (no plan), 1 and 2 are the two plans.
pub type Slot = u32;

/// No plan is live: everything is blocked.
pub const SLOT_RESTING: Slot = 0;

/// "No policy": worse than every rank.
pub const RANK_NONE: u32 = u32::MAX;
