use route::{Editor, Flow, IfIndex, RouteRefs};
use std::net::Ipv4Addr;

fn main() {
    let any = Ipv4Addr::UNSPECIFIED;
    let flow = Flow { src: any, ..Flow::new(any, IfIndex::LO) };
    let editor = Editor::new();
    let network = editor.network();
    let escaped = network.domain().reader().burst(|guard| network.v4.lookup(guard, &flow, RouteRefs::Noref).dst);
    println!("{escaped:?}");
}
