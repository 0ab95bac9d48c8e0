use std::sync::mpsc;

use rcu::{Domain, Ref, Slots};

fn main() {
    let domain = Domain::new();
    let routes = Slots::<u64>::new(&domain);
    let mut reader = domain.reader();
    let (tx, rx) = mpsc::channel::<Ref<'static, u64>>();
    let other = std::thread::spawn(move || rx.into_iter().count());
    reader.burst(|guard| tx.send(routes.get(guard, 1).unwrap()).unwrap());
    drop(tx);
    other.join().unwrap();
}
