use rcu::Domain;

fn main() {
    let domain = Domain::new();
    let mut reader = domain.reader();
    reader.burst(|_outer| {
        reader.burst(|_inner| ());
    });
}
