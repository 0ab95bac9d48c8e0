//! Writes the captures of `examples/l3vpn`: `cargo run -p noref-testkit --example make_l3vpn`.

use testkit::{capture, l3vpn, root};

fn main() {
    for (port, records) in l3vpn::PORTS.iter().zip(l3vpn::captures()) {
        let file = root().join(format!("examples/l3vpn/in-{port}.pcap"));
        capture::write(&file, &records);
        println!("{} frames for {port}", records.len());
    }
}
