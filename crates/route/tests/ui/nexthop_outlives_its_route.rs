use route::{Editor, Flow, IfIndex, RouteRefs};
use std::net::Ipv4Addr;

fn main() {
    let any = Ipv4Addr::UNSPECIFIED;
    let flow = Flow { src: any, ..Flow::new(any, IfIndex::LO) };
    let editor = Editor::new();
    let network = editor.network();
    let mut hop = None;
    network.domain().reader().burst(|guard| {
        let route = network.v4.lookup(guard, &flow, RouteRefs::Noref).dst;
        hop = route.nexthop.as_ref();
    });
    println!("{hop:?}");
}
