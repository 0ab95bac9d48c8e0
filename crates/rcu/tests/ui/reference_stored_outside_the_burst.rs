use rcu::{Domain, Slots};

fn main() {
    let domain = Domain::new();
    let routes = Slots::<u64>::new(&domain);
    let mut reader = domain.reader();
    let mut kept = Vec::new();
    reader.burst(|guard| kept.extend(routes.get(guard, 1)));
    println!("{kept:?}");
}
