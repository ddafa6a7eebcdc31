//! The kernel programs on a kernel without tcx: they load, attach to clsact, and decide like the function. One boot, in
//! which this program runs the tests of `in_guest`.

use std::sync::LazyLock;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

/// Modules without those of clsact: the kernel must load those by itself when the daemon requests them.
const MODULES: &[&str] = &["veth", "8021q", "nf_tables"];
const NAMES: [&str; 5] = [
    "the_programs_pass_the_verifier",
    "filters_stay_and_are_replaced_and_removed",
    "at_rest_nothing_is_forwarded_and_under_a_plan_it_is",
    "a_tagged_frame_is_evaluated_by_its_vlan",
    "the_program_decides_as_the_function_does",
];

/// Shared boot of the tests of this module.
static GUEST: LazyLock<Checks> = LazyLock::new(|| {
    let program = quoted(&this_program());
    let checks = NAMES.map(|name| format!("check {name} passes {program} vm::dataplane::in_guest::{name}\n"));
    let script = format!("echo \"release $(uname -r)\"\n{}", checks.concat());
    Checks::of(&script, Opts { modules: MODULES, ..Opts::default() })
});

#[test]
fn the_programs_work_without_tcx() {
    GUEST.assert_release("6.1.");
    for name in NAMES {
        GUEST.assert_ok(name);
    }
}

/// Tests that run in the guest.
mod in_guest {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::time::Duration;

    use gateway_common::classify::classify;
    use gateway_common::decide::decide;
    use gateway_common::verdict::Action;
    use gateway_common::wire::*;
    use gateway_core::plan::{Attachment, Dataplane};
    use gateway_core::plan_maps::PlanMaps;
    use gateway_ctl::os::bpf::{AttachMode, Programs};
    use gateway_tests::bpf_run::{Arrival, Run, admit_all, run};
    use gateway_tests::netns::{self, Namespace, Prefix};
    use gateway_tests::wait::wait_ok;
    use proptest::strategy::{Strategy as _, ValueTree as _};
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    use serde_json::Value;

    use crate::kernel::differential::{packets, plans};

    const SOON: Duration = Duration::from_secs(20);
    /// Gateway's address towards the server.
    const GATEWAY: &str = "203.0.113.2/32";
    const DROPPED: i32 = 2;
    const GOES_ON: i32 = -1;

    /// A laptop and a server with the gateway between them: `eth1` to the laptop, `eth0` to the server.
    struct Testbed {
        pins: PathBuf,
        laptop: Namespace,
        gateway: Namespace,
        _server: Namespace,
    }

    impl Testbed {
        fn new() -> Testbed {
            let prefix = Prefix::unique().expect("root");
            let [laptop, gateway, server] = ["laptop", "gateway", "server"]
                .map(|label| Namespace::create(&prefix, label).expect("a namespace"));
            gateway
                .ip(&format!(
                    "link add eth1 type veth peer name eth0 netns {}\nlink add eth0 type veth peer name eth0 netns {}\n\
                     address add 192.168.10.1/24 dev eth1\nlink set eth1 up\n\
                     address add 203.0.113.2/24 dev eth0\nlink set eth0 up",
                    laptop.name(),
                    server.name()
                ))
                .expect("the gateway's links");
            laptop
                .ip("address add 192.168.10.10/24 dev eth0\nlink set eth0 up\nroute add default via 192.168.10.1")
                .expect("the laptop's link");
            server
                .ip("address add 203.0.113.1/24 dev eth0\nlink set eth0 up\nroute add default via 203.0.113.2")
                .expect("the server's link");
            gateway.forward().expect("a router");
            gateway
                .nft(
                    "table inet seen {\n chain passing {\n type filter hook forward priority 0\n \
                     meta mark 0x47008000 counter\n }\n}\n",
                )
                .expect("a counter");
            Testbed { pins: prefix.pin_directory(), laptop, gateway, _server: server }
        }

        fn load(&self) -> Programs {
            Programs::load(&self.pins).expect("the programs load")
        }

        fn attach(&self, programs: &mut Programs) -> Vec<String> {
            let attached = self.gateway.within(|| programs.attach(&both()));
            assert!(attached.failed.is_empty(), "{:?}", attached.failed);
            attached.added
        }

        /// Returns the ids of the programs in the filters of an interface, as tc shows them.
        fn filters(&self, interface: &str, direction: &str) -> Vec<u64> {
            let shown =
                self.gateway.run("tc", &["-j", "filter", "show", "dev", interface, direction]).expect("tc");
            let shown: Value = serde_json::from_str(&shown).expect("JSON");
            let filters = shown.as_array().expect("a list").iter();
            filters.filter_map(|filter| filter.pointer("/options/prog/id")?.as_u64()).collect()
        }

        fn index(&self, interface: &str) -> u32 {
            let index = self.gateway.within(|| nix::net::if_::if_nametoindex(interface));
            index.expect("the interface is there")
        }

        /// Returns a plan that sends all traffic through the default egress `eth0`.
        fn direct(&self) -> Dataplane {
            let mark = EgressAllowKey { mark: Mark::DIRECT.0, index: self.index("eth0") };
            let mut plan =
                Dataplane { authorised: [(mark, EgressAllowValue::default())].into(), ..all(Choice::DIRECT) };
            admit_all(&mut plan, self.index("eth1"));
            plan
        }

        fn answers(&self, address: &str) -> bool {
            self.laptop.run("busybox", &["ping", "-c", "1", "-W", "2", address]).is_ok()
        }

        fn marked(&self) -> u64 {
            let shown = self.gateway.run("nft", &["-j", "list", "table", "inet", "seen"]).expect("nft");
            let shown: Value = serde_json::from_str(&shown).expect("JSON");
            let parts = shown["nftables"].as_array().expect("a list").iter();
            let mut counters = parts.filter_map(|part| {
                let expressions = part.pointer("/rule/expr")?.as_array()?;
                expressions.iter().find_map(|expression| expression.pointer("/counter/packets")?.as_u64())
            });
            counters.next().expect("the counter")
        }
    }

    impl Drop for Testbed {
        fn drop(&mut self) {
            netns::remove_pins(&self.pins);
        }
    }

    fn both() -> BTreeMap<String, Attachment> {
        BTreeMap::from([("eth1".to_owned(), Attachment::Ingress), ("eth0".to_owned(), Attachment::Guard)])
    }

    fn all(choice: Choice) -> Dataplane {
        Dataplane {
            header: PlanValue { all: 0, ..PlanValue::default() },
            actions: vec![ActionValue { v4: choice, v6: choice, policy: 1, ..ActionValue::default() }],
            // The guard passes the host's own packets by it.
            locals: [(GATEWAY.parse().expect("a network"), LocalValue::new(LocalKind::Own))].into(),
            ..Dataplane::default()
        }
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn the_programs_pass_the_verifier() {
        assert_eq!(AttachMode::of_this_kernel(), AttachMode::Clsact);
        let testbed = Testbed::new();
        let mut programs = testbed.load();
        assert_eq!(programs.live().expect("the slot"), None);
        for name in ["gw_ingress", "gw_lan_egress", "gw_guard", "gw_wan_ingress"] {
            let info = programs.program(name).expect("the program").info().expect("the kernel knows it");
            println!("{name}: {:?} instructions verified", info.verified_instruction_count());
        }
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn filters_stay_and_are_replaced_and_removed() {
        let testbed = Testbed::new();
        let mut programs = testbed.load();
        assert_eq!(testbed.attach(&mut programs), ["eth0", "eth1"]);
        let places = || (testbed.filters("eth1", "ingress"), testbed.filters("eth0", "egress"));
        let (ingress, guard) = places();
        assert_eq!((ingress.len(), guard.len()), (1, 1), "one filter each");
        assert!(testbed.attach(&mut programs).is_empty(), "what stands there already is left alone");
        drop(programs);
        assert_eq!(places(), (ingress.clone(), guard.clone()), "the filters outlive the process");

        let mut programs = testbed.load();
        assert_eq!(testbed.attach(&mut programs), ["eth0", "eth1"]);
        let (new_ingress, new_guard) = places();
        assert_eq!((new_ingress.len(), new_guard.len()), (1, 1), "in place of the old ones, not beside them");
        assert!(new_ingress != ingress && new_guard != guard, "the new programs stand there");

        // An interface that changes its role, and one that is no longer configured.
        testbed.gateway.ip("link add eth2 type veth peer name eth3").expect("another link");
        let want = BTreeMap::from([
            ("eth1".to_owned(), Attachment::Guard),
            ("eth2".to_owned(), Attachment::Ingress),
        ]);
        let attached = testbed.gateway.within(|| programs.attach(&want));
        assert_eq!((attached.added.len(), attached.failed.len()), (2, 0), "{attached:?}");
        // A foreign filter persists.
        let stranger = ["filter", "add", "dev", "eth0", "egress", "prio", "9", "protocol", "all", "matchall"];
        testbed
            .gateway
            .run("tc", &[&stranger[..], &["action", "pass"]].concat())
            .expect("a stranger's filter");
        let deviation =
            |interface| testbed.gateway.within(|| programs.deviation(interface, Attachment::Guard));
        assert_eq!(deviation("eth0").as_deref(), Some("behind 1 other programs"), "the stranger comes first");
        assert_eq!(deviation("eth1"), None);
        testbed.gateway.within(|| programs.prune(&want)).expect("what is not wanted goes");
        let (ingress, guard) = places();
        assert_eq!((ingress.len(), guard.len()), (1, 0), "the program that marks, and nothing at the egress");
        assert_ne!(ingress, new_ingress, "it took the place of the program of LANs");
        assert!(testbed.filters("eth0", "ingress").is_empty(), "nothing of ours is left there");
        assert_eq!(
            (testbed.filters("eth1", "egress").len(), testbed.filters("eth2", "ingress").len()),
            (1, 1)
        );
        let shown = testbed.gateway.run("tc", &["filter", "show", "dev", "eth0", "egress"]).expect("tc");
        assert!(shown.contains("matchall"), "{shown}");
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn at_rest_nothing_is_forwarded_and_under_a_plan_it_is() {
        let testbed = Testbed::new();
        let reaches = || {
            wait_ok(SOON, "the server to answer", || {
                anyhow::ensure!(testbed.answers("203.0.113.1"), "no answer");
                Ok(())
            })
        };
        reaches().expect("an ordinary router at first");
        assert_eq!(testbed.marked(), 0, "nobody marks anything");
        let mut programs = testbed.load();
        testbed.attach(&mut programs);
        assert!(!testbed.answers("203.0.113.1"), "at rest nothing is forwarded");
        assert!(testbed.answers("192.168.10.1"), "the gateway itself answers");
        let prevented: u64 = programs.prevented().expect("counters").values().map(|c| c.packets).sum();
        assert!(prevented > 0, "the guard has seen it");

        programs.apply(&testbed.direct()).expect("the plan goes live");
        reaches().expect("the plan lets it by");
        assert!(testbed.marked() > 0, "and marks it");
        let counted = programs.policy_counters(1).expect("counters").packets;
        assert!(counted > 0, "and counts it");

        programs.apply(&all(Choice::DROP)).expect("the plan goes live");
        assert!(!testbed.answers("203.0.113.1"), "a policy drops it");
        drop(programs);
        assert!(!testbed.answers("203.0.113.1"), "the plan holds without its process");
        // The plan applies to the LAN: the host's own packets pass.
        let reply = testbed.gateway.run("busybox", &["ping", "-c", "1", "-W", "5", "203.0.113.1"]);
        reply.expect("the gateway itself reaches the server");
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_tagged_frame_is_evaluated_by_its_vlan() {
        let testbed = Testbed::new();
        for (namespace, parent, address) in
            [(&testbed.laptop, "eth0", "192.168.30.10/24"), (&testbed.gateway, "eth1", "192.168.30.1/24")]
        {
            namespace
                .ip(&format!(
                    "link add link {parent} name {parent}.30 type vlan id 30\n\
                     address add {address} dev {parent}.30\nlink set {parent}.30 up"
                ))
                .expect("a VLAN");
        }
        let mut programs = testbed.load();
        testbed.attach(&mut programs);
        let mut plan = testbed.direct();
        plan.actions.insert(0, ActionValue { policy: 2, ..ActionValue::default() });
        plan.header.all = 1;
        plan.vlans.insert(30, 0);
        programs.apply(&plan).expect("the plan goes live");
        wait_ok(SOON, "the server to answer an untagged frame", || {
            anyhow::ensure!(testbed.answers("203.0.113.1"), "no answer");
            Ok(())
        })
        .expect("VLAN 30 only is dropped");
        let before = programs.policy_counters(2).expect("counters").packets;
        testbed.laptop.ip("route replace default via 192.168.30.1 dev eth0.30").expect("through the VLAN");
        assert!(!testbed.answers("203.0.113.1"), "a policy of the VLAN drops it");
        assert!(programs.policy_counters(2).expect("counters").packets > before, "and counts it");
        plan.actions[0] = ActionValue { policy: 2, ..plan.actions[1] };
        programs.apply(&plan).expect("the plan goes live");
        wait_ok(SOON, "the server to answer a tagged frame", || {
            anyhow::ensure!(testbed.answers("203.0.113.1"), "no answer");
            Ok(())
        })
        .expect("a tagged frame is forwarded by another policy");
    }

    /// Plans times packets: some hundred cases, since an activation is slow here.
    const PLANS: usize = 12;
    const PACKETS: usize = 50;

    #[test]
    #[ignore = "runs inside the guest"]
    fn the_program_decides_as_the_function_does() {
        let testbed = Testbed::new();
        let mut programs = testbed.load();
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, b"another kernel, the same verdict");
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let mut seen = BTreeMap::<&'static str, usize>::new();
        for round in 0..PLANS {
            let plan = plans::plan().new_tree(&mut runner).expect("a plan").current();
            let swap = programs.apply(&plan).expect("the plan goes live");
            programs.delete_flows().expect("flows are forgotten");
            let environment = PlanMaps::new(Some(&plan));
            environment.generation.set(swap.generation);
            environment.since_boot.set(1 << 40);
            for number in plan.actions.iter().map(|action| action.policy) {
                environment
                    .turns
                    .borrow_mut()
                    .insert(number, programs.round_robin_counter(number).expect("turns"));
            }
            for _ in 0..PACKETS {
                let packet = packets::packet().new_tree(&mut runner).expect("a packet").current();
                let want = decide(&classify(packet.as_slice(), 1), &environment);
                let program = programs.program("gw_ingress").expect("the program");
                let have = run(program, &packet, Arrival::default()).expect("a test run");
                let expected = match want.action {
                    Action::Drop => Run { action: DROPPED, mark: 0 },
                    Action::Mark => Run { action: GOES_ON, mark: want.mark },
                    Action::Pass => Run { action: GOES_ON, mark: 0 },
                };
                assert_eq!(have, expected, "round {round}: {packet:02x?}\n{want:?}\n{plan:?}");
                *seen.entry(want.reason.as_str()).or_default() += 1;
            }
        }
        println!("{} cases agree: {seen:?}", PLANS * PACKETS);
        assert!(seen.len() >= 10, "too few verdicts were reached: {seen:?}");
    }
}
