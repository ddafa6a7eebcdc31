//! Compiled filter entry: a rule, an entry of a list, a rewrite or a canary, with its scope and schedule.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::Id;
use gateway_model::kinds::dns::Scope;
use gateway_model::kinds::dns_filter_rule::Schedule;
use gateway_model::kinds::{Device, DeviceGroup, PrivacyClass};
use gateway_model::pattern::AdblockRule;
use gateway_model::{Resource, State, Stored};
use ipnet::IpNet;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::pattern::Test;
use crate::dns::decision::{Action, Cause, ClientIdentity, Question};
use crate::dns::name::{Name, NameRef};
use crate::dns::rtype;

/// Precedence of an entry. Within one tier the level decides, then the specificity of the pattern, then the age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// Blocks of privacy classes, which no rule opens.
    Privacy,
    /// Rules with `$important`.
    AllowAlways,
    ActAlways,
    /// Rules that allow, and the allowlist.
    Allow,
    /// Rules with another action.
    Act,
    Canary,
    /// Domains on the blocklist.
    Blocklist,
    ListAllowAlways,
    ListActAlways,
    ListAllow,
    ListAct,
    Log,
}

impl Tier {
    pub(super) const fn allows(self) -> bool {
        matches!(self, Tier::AllowAlways | Tier::Allow | Tier::ListAllowAlways | Tier::ListAllow)
    }
}

/// Scope of an entry that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Device,
    Group,
    Class,
    Everyone,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub cause: Cause,
    pub id: Option<Id>,
    pub text: Arc<str>,
    pub tier: Tier,
    pub effect: RuleEffect,
    pub test: Test,
    /// None: at any time, for everyone and every type.
    pub conditions: Option<Box<RuleConditions>>,
}

#[derive(Clone, Debug)]
pub(super) enum RuleEffect {
    /// Resolved as usual.
    Pass,
    Do(Action),
    Answers(Answers),
}

/// Local answers that replace those of public DNS.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub addresses: Vec<IpAddr>,
    pub name: Option<Name>,
    /// The public addresses of the family are kept.
    pub keep_four: bool,
    pub keep_six: bool,
    /// There are no records of other types either.
    pub alone: bool,
}

impl RuleEffect {
    /// Returns the action on a query that the entry matches.
    pub(super) fn action(&self, question: Question<'_>) -> Action {
        match self {
            RuleEffect::Pass => Action::Pass,
            RuleEffect::Do(action) => action.clone(),
            RuleEffect::Answers(answers) => answers.action(question),
        }
    }
}

impl Answers {
    fn action(&self, question: Question<'_>) -> Action {
        if let Some(name) = &self.name {
            // The target of a rewrite is resolved unchanged.
            return if name.as_ref() == question.name { Action::Pass } else { Action::Name(name.clone()) };
        }
        let (keeps, four) = match question.qtype {
            rtype::A => (self.keep_four, true),
            rtype::AAAA => (self.keep_six, false),
            // Hints and services bypass the answer (RFC 9460).
            rtype::HTTPS | rtype::SVCB if self.keep_four && self.keep_six => return Action::Pass,
            rtype::HTTPS | rtype::SVCB => return Action::Addresses(Vec::new()),
            _ if self.keeps_any() => return Action::Pass,
            rtype::ANY => return Action::Addresses(self.addresses.clone()),
            _ if self.alone => return Action::Addresses(Vec::new()),
            _ => return Action::LocalOnly,
        };
        let family: Vec<IpAddr> = self.addresses.iter().filter(|a| a.is_ipv4() == four).copied().collect();
        if family.is_empty() && keeps { Action::Pass } else { Action::Addresses(family) }
    }

    const fn keeps_any(&self) -> bool {
        self.keep_four || self.keep_six
    }
}

/// Conditions beside the name.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleConditions {
    pub types: Vec<u16>,
    pub not_types: Vec<u16>,
    pub scope: ClientSelector,
    pub clients: Vec<ClientTest>,
    pub hours: Option<Hours>,
    pub deny_allow: Vec<Name>,
}

/// Match of a query by an entry whose pattern matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleMatch {
    pub level: Level,
    /// The entry is for addresses, and a query of this type would return them too.
    pub implied: bool,
}

impl Entry {
    pub(super) fn meets(
        &self,
        asker: &ClientIdentity,
        name: NameRef<'_>,
        qtype: u16,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Option<RuleMatch> {
        let Some(conditions) = &self.conditions else {
            return Some(RuleMatch { level: Level::Everyone, implied: false });
        };
        let implied = conditions.is_for_type(qtype, !matches!(self.effect, RuleEffect::Pass))?;
        if conditions.deny_allow.iter().any(|denied| name.is_within(denied.as_ref())) {
            return None;
        }
        let level = conditions.scope.level(asker)?.min(clients(&conditions.clients, asker)?);
        let holds = conditions.hours.is_none_or(|hours| hours.hold(now, zone));
        holds.then_some(RuleMatch { level, implied })
    }
}

impl RuleConditions {
    /// Reports whether the conditions can hold for a client.
    pub(super) fn may_hold_for(&self, asker: &ClientIdentity) -> bool {
        self.scope.is_match(asker) && clients(&self.clients, asker).is_some()
    }

    /// Returns the conditions in the rule itself. The caller adds the scope.
    pub(super) fn of_adblock(rule: &AdblockRule, state: Option<&State>) -> RuleConditions {
        RuleConditions {
            types: rule.types.iter().filter_map(rtype::of_query).collect(),
            not_types: rule.not_types.iter().filter_map(rtype::of_query).collect(),
            clients: match state {
                Some(state) => rule.clients.iter().map(|text| ClientTest::read(text, state)).collect(),
                None => Vec::new(),
            },
            deny_allow: rule.deny_allow.iter().map(Name::from).collect(),
            ..RuleConditions::default()
        }
    }

    /// Returns none if there is no condition.
    pub(super) fn boxed(self) -> Option<Box<RuleConditions>> {
        let RuleConditions { types, not_types, scope, clients, hours, deny_allow } = &self;
        let nothing = types.is_empty()
            && not_types.is_empty()
            && *scope == ClientSelector::default()
            && clients.is_empty()
            && hours.is_none()
            && deny_allow.is_empty();
        (!nothing).then(|| Box::new(self))
    }

    /// Returns whether the conditions apply to the type only because of the addresses in its answers. Returns none if
    /// they do not apply at all.
    fn is_for_type(&self, qtype: u16, acts: bool) -> Option<bool> {
        let is_for = |qtype: u16| {
            (self.types.is_empty() || self.types.contains(&qtype)) && !self.not_types.contains(&qtype)
        };
        if is_for(qtype) {
            return Some(false);
        }
        // Forbidden addresses must not arrive as hints or in answers to ANY either. A type that is excluded by name is
        // excluded on purpose.
        let around = matches!(qtype, rtype::HTTPS | rtype::SVCB | rtype::ANY);
        let addresses = is_for(rtype::A) || is_for(rtype::AAAA);
        (acts && around && addresses && !self.not_types.contains(&qtype)).then_some(true)
    }
}

/// Clients that a rule applies to; everyone by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientSelector {
    devices: Vec<Id>,
    groups: Vec<Id>,
    class: Option<Id>,
    restricted: bool,
}

impl ClientSelector {
    pub(super) fn of(scope: &Scope, state: &State) -> ClientSelector {
        let mut devices = scope.devices.clone();
        devices.sort_unstable();
        let restricted = !devices.is_empty() || !scope.groups.is_empty() || scope.privacy_class.is_some();
        let class = state.referred::<PrivacyClass>(&scope.privacy_class).map(|class| class.meta.id);
        ClientSelector { devices, groups: scope.groups.clone(), class, restricted }
    }

    /// Returns a selector for these devices.
    pub(super) fn devices(mut devices: Vec<Id>) -> ClientSelector {
        devices.sort_unstable();
        ClientSelector { devices, restricted: true, ..ClientSelector::default() }
    }

    /// Reports whether it is for some clients only.
    pub(super) const fn is_restricted(&self) -> bool {
        self.restricted
    }

    /// Reports whether a client belongs to it.
    pub(super) fn is_match(&self, asker: &ClientIdentity) -> bool {
        self.level(asker).is_some()
    }

    fn level(&self, asker: &ClientIdentity) -> Option<Level> {
        if !self.restricted {
            Some(Level::Everyone)
        } else if asker.device.is_some_and(|device| self.devices.binary_search(&device).is_ok()) {
            Some(Level::Device)
        } else if asker.groups.iter().any(|group| self.groups.contains(group)) {
            Some(Level::Group)
        } else {
            (self.class.is_some() && self.class == asker.privacy_class).then_some(Level::Class)
        }
    }
}

/// One client of `$client`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientTest {
    excludes: bool,
    net: Option<IpNet>,
    devices: Vec<Id>,
    groups: Vec<Id>,
}

impl ClientTest {
    /// Parses an address, a network, or the name of a device, of its host or of a group.
    fn read(text: &str, state: &State) -> ClientTest {
        let (excludes, text) = text.strip_prefix('~').map_or((false, text), |rest| (true, rest));
        let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        let same = |name: &str| name.eq_ignore_ascii_case(text);
        let named = |device: &&Device| {
            same(&device.name)
                || device.hostname.as_deref().is_some_and(same)
                || device.all_macs().iter().any(|mac| same(&mac.to_string()))
        };
        let devices = Device::table(state).iter().filter(named).map(|device| device.meta.id).collect();
        let groups = DeviceGroup::table(state).iter().filter(|group| same(group.label()));
        ClientTest { excludes, net, devices, groups: groups.map(|group| group.meta.id).collect() }
    }

    fn is(&self, asker: &ClientIdentity) -> bool {
        let address = asker.address.map(|address| address.to_canonical());
        self.net.zip(address).is_some_and(|(net, address)| net.contains(&address))
            || asker.device.is_some_and(|device| self.devices.contains(&device))
            || asker.groups.iter().any(|group| self.groups.contains(group))
    }
}

fn clients(tests: &[ClientTest], asker: &ClientIdentity) -> Option<Level> {
    if tests.iter().any(|test| test.excludes && test.is(asker)) {
        return None;
    }
    let mut named = tests.iter().filter(|test| !test.excludes).peekable();
    if named.peek().is_none() {
        return Some(Level::Everyone);
    }
    named.any(|test| test.is(asker)).then_some(Level::Device)
}

/// Hours of the week in local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hours {
    /// Bit 0 is Monday.
    days: u8,
    start: u16,
    end: u16,
}

impl Hours {
    /// Returns none if a time is no time of day.
    pub(super) fn read(schedule: &Schedule) -> Option<Hours> {
        let days = schedule.days.iter().fold(0, |days, day| days | 1 << *day as u8);
        let days = if schedule.days.is_empty() { 0x7f } else { days };
        Some(Hours { days, start: minutes(&schedule.start)?, end: minutes(&schedule.end)? })
    }

    fn hold(self, now: Timestamp, zone: &TimeZone) -> bool {
        let local = zone.to_datetime(now);
        let minute = u16::from(local.hour().unsigned_abs()) * 60 + u16::from(local.minute().unsigned_abs());
        let today = u32::from(local.weekday().to_monday_zero_offset().unsigned_abs());
        let on = |day: u32| self.days >> (day % 7) & 1 != 0;
        match self.start.cmp(&self.end) {
            Ordering::Less => on(today) && (self.start..self.end).contains(&minute),
            // The interval ends on the next day, and belongs to the day on which it began.
            _ => (on(today) && minute >= self.start) || (on(today + 6) && minute < self.end),
        }
    }
}

fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 24 && minutes < 60).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::dns::Weekday;

    use super::*;

    #[test]
    fn hours_are_those_of_the_clock_on_the_wall() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let hours = |days: &[Weekday], start: &str, end: &str| {
            let schedule = Schedule { days: days.to_vec(), start: start.to_owned(), end: end.to_owned() };
            Hours::read(&schedule).expect("hours")
        };
        // 2026-11-22 is a Sunday.
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let school = hours(&[Weekday::Mon], "08:00", "13:30");
        assert!(school.hold(at("2026-11-23T06:00:00Z"), &zone), "it is 08:00 there");
        assert!(!school.hold(at("2026-11-23T11:30:00Z"), &zone), "the end is exclusive");
        assert!(!school.hold(at("2026-11-22T08:00:00Z"), &zone), "another day");
        let night = hours(&[Weekday::Sun], "22:00", "06:00");
        assert!(night.hold(at("2026-11-22T21:00:00Z"), &zone));
        assert!(night.hold(at("2026-11-23T03:59:00Z"), &zone), "the night of Sunday ends on Monday");
        assert!(!night.hold(at("2026-11-22T03:00:00Z"), &zone), "the night of Saturday");
        assert!(hours(&[], "00:00", "24:00").hold(at("2026-11-22T21:59:59Z"), &zone));
    }
}
