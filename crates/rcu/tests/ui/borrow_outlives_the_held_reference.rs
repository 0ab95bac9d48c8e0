use std::sync::Arc;

use rcu::Ref;

fn main() {
    let held = Ref::from(Arc::new(1u64));
    let borrowed = held.borrow();
    drop(held);
    println!("{}", *borrowed);
}
