use route::{Editor, Flow, IfIndex, RouteRefs};
use std::net::Ipv4Addr;

fn main() {
    let any = Ipv4Addr::UNSPECIFIED;
    let flow = Flow { src: any, ..Flow::new(any, IfIndex::LO) };
    let editor = Editor::new();
    let network = editor.network();
    let mut kept = Vec::new();
    network.domain().reader().burst(|guard| kept.push(network.v4.lookup(guard, &flow, RouteRefs::Noref).dst));
    println!("{kept:?}");
}
