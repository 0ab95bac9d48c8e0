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
    let mut kept = Vec::new();
    let returned = network.domain().reader().burst(|guard| {
        let route = network.v4.lookup(guard, &flow, RouteRefs::Noref).dst;
        kept.push(route.hold());
        send.send(route.hold()).unwrap();
        route.hold()
    });
    drop(send);
    assert!(kept[0].ptr_eq(&returned) && returned.is_held());
    assert_eq!(other.join().unwrap(), 1);
}
