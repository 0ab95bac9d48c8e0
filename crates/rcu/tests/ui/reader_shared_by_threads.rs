use rcu::Domain;

fn among_threads(_: &impl Sync) {}

fn main() {
    let domain = Domain::new();
    let reader = domain.reader();
    among_threads(&reader);
}
