//! Even a route that was counted when it was found is the burst's: whether references are counted is known at run time only.
use route::{DstRef, Editor, Flow, IfIndex, RouteRefs};
use std::net::Ipv4Addr;

/// A packet that waits for its neighbour.
struct Parked {
    route: DstRef<'static>,
}

fn main() {
    let any = Ipv4Addr::UNSPECIFIED;
    let flow = Flow { src: any, ..Flow::new(any, IfIndex::LO) };
    let editor = Editor::new();
    let network = editor.network();
    network.domain().reader().burst(|guard| {
        let parked = Parked { route: network.v4.lookup(guard, &flow, RouteRefs::Counted).dst };
        println!("{:?}", parked.route);
    });
}
