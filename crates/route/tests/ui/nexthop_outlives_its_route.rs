use route::{Editor, Flow, IfIndex, RouteRefs};
use std::net::Ipv4Addr;

fn main() {
    let any = Ipv4Addr::UNSPECIFIED;
    let flow = Flow { dst: any, src: any, iif: IfIndex::LO, vrf: IfIndex(0), vrf_table: None, link: IfIndex::LO };
    let editor = Editor::new();
    let network = editor.network();
    let mut hop = None;
    network.domain().reader().burst(|guard| {
        let route = network.v4.lookup(guard, &flow, RouteRefs::Noref).dst;
        hop = route.nexthop.as_ref();
    });
    println!("{hop:?}");
}
