use rcu::{Domain, Ref, Slots};

/// A packet that waits for its neighbour.
struct Parked {
    route: Ref<'static, u64>,
}

fn main() {
    let domain = Domain::new();
    let routes = Slots::<u64>::new(&domain);
    let mut reader = domain.reader();
    reader.burst(|guard| {
        let route = routes.get(guard, 1).unwrap();
        let parked = Parked { route };
        println!("{}", *parked.route);
    });
}
