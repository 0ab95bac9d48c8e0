use route::{DstRef, Editor, Flow, IfIndex, RouteRefs};
use std::net::Ipv4Addr;
use std::sync::mpsc;

fn main() {
    let any = Ipv4Addr::UNSPECIFIED;
    let flow = Flow { src: any, ..Flow::new(any, IfIndex::LO) };
    let editor = Editor::new();
    let network = editor.network();
    let (send, receive) = mpsc::channel::<DstRef<'static>>();
    let other = std::thread::spawn(move || receive.into_iter().count());
    network.domain().reader().burst(|guard| send.send(network.v4.lookup(guard, &flow, RouteRefs::Noref).dst).unwrap());
    drop(send);
    other.join().unwrap();
}
