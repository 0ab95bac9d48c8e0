use rcu::{Domain, Guard};

fn on_another_thread(_: impl Send) {}

fn main() {
    let domain = Domain::new();
    let mut reader = domain.reader();
    reader.burst(|guard: &Guard<'_>| on_another_thread(guard));
}
