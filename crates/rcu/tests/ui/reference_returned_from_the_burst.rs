use rcu::{Domain, Slots};

fn main() {
    let domain = Domain::new();
    let routes = Slots::<u64>::new(&domain);
    let mut reader = domain.reader();
    let escaped = reader.burst(|guard| routes.get(guard, 1));
    println!("{escaped:?}");
}
