use rcu::{Domain, Guard};

fn same_burst<'g>(_: &Guard<'g>, _: &Guard<'g>) {}

fn main() {
    let domain = Domain::new();
    let (mut one, mut two) = (domain.reader(), domain.reader());
    one.burst(|outer| two.burst(|inner| same_burst(outer, inner)));
}
