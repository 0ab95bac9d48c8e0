use rcu::{Domain, Rcu};

fn main() {
    let domain = Domain::new();
    let route = Rcu::new(&domain, 1u64);
    let mut reader = domain.reader();
    reader.burst(|guard| {
        let borrowed = route.load(guard);
        reader.offline();
        println!("{borrowed}");
    });
}
