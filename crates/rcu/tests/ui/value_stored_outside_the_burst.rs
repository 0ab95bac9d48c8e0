use rcu::{Domain, Rcu};

fn main() {
    let domain = Domain::new();
    let route = Rcu::new(&domain, 1u64);
    let mut reader = domain.reader();
    let mut kept = None;
    reader.burst(|guard| kept = Some(route.load(guard)));
    println!("{kept:?}");
}
