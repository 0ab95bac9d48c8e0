use rcu::{Domain, Rcu};

fn main() {
    let domain = Domain::new();
    let route = Rcu::new(&domain, 1u64);
    let mut reader = domain.reader();
    let escaped = reader.burst(|guard| route.load(guard));
    println!("{escaped}");
}
