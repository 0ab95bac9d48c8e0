//! What a worker remembers is for the same question only, and for the same state of the tables.

use std::net::{Ipv4Addr, Ipv6Addr};

use route::{
    Action, Address, DstCache, Editor, Family, Fib, Flow, HopSpec, IfIndex, LinkChange, Mark, Network, Ports, Prefix, Put, RouteRefs,
    RouteSpec, Rule, Selector, TableId, Upper,
};

const E0: IfIndex = IfIndex(2);
const RED: TableId = TableId(10);
const BLUE: TableId = TableId(20);
const MISSING: TableId = TableId(99);

/// The tables of the rules below, of the VRFs, and main: each has a route of its own for everything.
const TABLES: [TableId; 9] = [RED, BLUE, TableId(101), TableId(102), TableId(103), TableId(104), TableId(105), TableId(106), TableId::MAIN];

/// A family's addresses and tables.
trait Asked: Family {
    const ADDRS: [Self; 2];
    fn fib(network: &Network) -> &Fib<Self>;
}

impl Asked for Ipv4Addr {
    const ADDRS: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(203, 0, 113, 2)];

    fn fib(network: &Network) -> &Fib<Ipv4Addr> {
        &network.v4
    }
}

impl Asked for Ipv6Addr {
    const ADDRS: [Ipv6Addr; 2] = [Ipv6Addr::new(0xfd01, 2, 3, 4, 5, 6, 7, 8), Ipv6Addr::new(0xfd0a, 11, 12, 13, 14, 15, 16, 17)];

    fn fib(network: &Network) -> &Fib<Ipv6Addr> {
        &network.v6
    }
}

fn default<A: Address>(table: TableId, mtu: u32) -> RouteSpec<A> {
    let all = Prefix::new(A::UNSPECIFIED, 0).unwrap();
    RouteSpec { table: Some(table), mtu, ..RouteSpec::new(all, vec![HopSpec::new(E0, None)]) }
}

/// A router where all that a lookup may depend on leads to a table of its own.
fn router<A: Asked>() -> Editor {
    let mut editor = Editor::new();
    editor.port_add("e0", 0).unwrap();
    editor.link_set(E0, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
    editor.vrf_add("red", RED).unwrap();
    editor.vrf_add("blue", BLUE).unwrap();
    for (mtu, table) in (1301..).zip(TABLES) {
        editor.route_put(default::<A>(table, mtu), Put::Add).unwrap();
    }
    let any = Selector::default;
    let selectors: [Selector<A>; 6] = [
        Selector { mark: Some(Mark { value: 1, mask: u32::MAX }), ..any() },
        Selector { mark: Some(Mark { value: 2, mask: u32::MAX }), ..any() },
        Selector { from: Prefix::new(A::ADDRS[1], A::BITS), to: Prefix::new(A::ADDRS[0], A::BITS), ..any() },
        Selector { iif: Some(IfIndex::LO), ..any() },
        Selector { tos: Some(0x10), ..any() },
        Selector { dport: Some(Ports { first: 53, last: 53 }), ..any() },
    ];
    for (n, select) in (0..).zip(selectors) {
        editor.rule_add(Rule { select, ..Rule::all(100 + n, Action::Lookup(TableId(101 + n))) }).unwrap();
    }
    editor.commit();
    editor
}

/// Every question that a few values of each thing make.
fn questions<A: Asked>() -> Vec<(Option<TableId>, Flow<A>)> {
    let mut all = Vec::new();
    let uppers = [(17, 1, 53), (6, 1, 80), (6, 2, 80)].map(|(protocol, sport, dport)| Upper { protocol, sport, dport });
    for number in 0..2 * 2 * 2 * 3 * 3 * 2 * 3 * 2 * 4 {
        let mut rest = number;
        let mut pick = |of: usize| {
            let picked = rest % of;
            rest /= of;
            picked
        };
        let (dst, src, iif) = (A::ADDRS[pick(2)], A::ADDRS[pick(2)], [E0, IfIndex::LO][pick(2)]);
        let (vrf, vrf_table) = [(IfIndex(0), None), (IfIndex(3), Some(RED)), (IfIndex(4), Some(BLUE))][pick(3)];
        let (mark, dsfield, upper) = ([0, 1, 2][pick(3)], [0, 0x10][pick(2)], uppers[pick(3)]);
        let from_known = [true, false][pick(2)];
        let table = [None, Some(RED), Some(BLUE), Some(MISSING)][pick(4)];
        all.push((table, Flow { src, vrf, vrf_table, mark, dsfield, upper, from_known, ..Flow::new(dst, iif) }));
    }
    all
}

/// Asks everything, each question a few times among others; every answer must be what the tables say. How many were remembered.
fn ask_all<A: Asked>(editor: &Editor, cache: &mut DstCache<A>, refs: RouteRefs) -> usize {
    let network = editor.network();
    let fib = A::fib(network);
    let questions = questions::<A>();
    let mut remembered = 0;
    // Strides that have nothing in common with the number of questions: contexts come in mixed order.
    for stride in [1, 7, 505, 1009] {
        for n in 0..questions.len() {
            // Once again at once, and then in the next round.
            let (table, flow) = &questions[(n / 2 * stride) % questions.len()];
            network.domain().reader().burst(|guard| {
                let told = cache.lookup(guard, fib, network.generation(), *table, flow, refs);
                let right = match table {
                    Some(table) => fib.lookup_table(guard, *table, flow, RouteRefs::Noref),
                    None => Some(fib.lookup(guard, flow, RouteRefs::Noref)),
                };
                remembered += usize::from(told.as_ref().is_some_and(|told| told.number == 0 && told.dst.mtu != 0));
                assert_eq!(told.map(|told| told.dst.mtu), right.map(|right| right.dst.mtu), "{table:?} {flow:?}");
            });
        }
    }
    remembered
}

fn no_two_contexts_share_an_answer<A: Asked>() {
    let (mut editor, mut cache) = (router::<A>(), DstCache::<A>::default());
    let remembered = ask_all(&editor, &mut cache, RouteRefs::Noref);
    assert!(remembered > 1000, "{remembered}");
    // Every state has its own answers: a route replaced, one gone whose number another gets, a rule gone, a VRF gone.
    editor.route_put(default::<A>(TableId(101), 1401), Put::Replace).unwrap();
    editor.commit();
    ask_all(&editor, &mut cache, RouteRefs::Noref);
    let all = Prefix::new(A::UNSPECIFIED, 0).unwrap();
    editor.route_del::<A>(TableId(102), all, |_| true).unwrap();
    editor.commit();
    editor.network().domain().reclaim();
    editor.route_put(default::<A>(TableId(103), 1403), Put::Replace).unwrap();
    editor.commit();
    ask_all(&editor, &mut cache, RouteRefs::Noref);
    editor.rule_del(|rule: &Rule<A>| rule.pref == 103).unwrap();
    editor.commit();
    ask_all(&editor, &mut cache, RouteRefs::Noref);
    assert_eq!(ask_all(&editor, &mut cache, RouteRefs::Counted), 0, "references are taken from the tables");
}

#[test]
fn forwarded_and_local_packets_two_vrfs_and_two_marks_never_share_an_answer_of_ipv6() {
    no_two_contexts_share_an_answer::<Ipv6Addr>();
}

#[test]
fn forwarded_and_local_packets_two_vrfs_and_two_marks_never_share_an_answer_of_ipv4() {
    no_two_contexts_share_an_answer::<Ipv4Addr>();
}

#[test]
fn what_means_something_on_one_link_or_for_one_interface_is_not_remembered() {
    let (editor, mut cache) = (router::<Ipv6Addr>(), DstCache::<Ipv6Addr>::default());
    let network = editor.network();
    let plain = Flow::new(Ipv6Addr::ADDRS[0], E0);
    let bound = Flow { oif: E0, ..plain };
    let on_link = Flow::new("fe80::1".parse().unwrap(), E0);
    let mut number = |flow: &Flow<Ipv6Addr>, generation| {
        let mut reader = network.domain().reader();
        reader.burst(|guard| cache.lookup(guard, &network.v6, generation, None, flow, RouteRefs::Noref).unwrap().number)
    };
    let now = network.generation();
    assert!(now.is_some());
    assert_ne!(number(&plain, now), 0);
    assert_eq!(number(&plain, now), 0, "remembered");
    for _ in 0..2 {
        assert_ne!(number(&bound, now), 0);
        assert_ne!(number(&plain, None), 0, "while a commit is under way");
        number(&on_link, now);
    }
}
