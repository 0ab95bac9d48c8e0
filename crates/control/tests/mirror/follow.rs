//! Following without a socket and without a kernel.

use std::time::Duration;

use control::mirror::{Follow, Object, Objects, Progress, Snapshot};

const START: Duration = Duration::ZERO;

/// A follower to whom everything was told that is due, and what that was.
fn told(follow: &mut Follow, now: Duration) -> Vec<Object> {
    let mut told = Vec::new();
    while let Some(object) = follow.due(now) {
        follow.dumped(now, object, Snapshot::default(), Progress::Done);
        told.push(object);
    }
    told
}

fn settled() -> Follow {
    let mut follow = Follow::new();
    told(&mut follow, START);
    follow.dirty = Default::default();
    assert!(follow.is_settled());
    follow
}

/// A message without attributes.
fn event(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(body);
    bytes
}

/// `RTM_DELADDR` of an IPv4 address.
fn address_gone() -> Vec<u8> {
    event(21, &[2, 24, 0, 0, 3, 0, 0, 0])
}

/// Everything but the buckets of resilient groups, which are not asked for where there is no such group.
fn all() -> Vec<Object> {
    Object::ALL.into_iter().filter(|object| *object != Object::Buckets).collect()
}

#[test]
fn at_first_everything_is_read_in_an_order_in_which_it_builds_up() {
    assert_eq!(told(&mut Follow::new(), START), all());
}

#[test]
fn after_a_loss_what_waits_is_passed_over_and_everything_read_again() {
    let mut follow = settled();
    follow.lost();
    assert_eq!((follow.due(START), follow.patience(START), follow.is_settled()), (None, Duration::ZERO, false));
    follow.datagram(START, &address_gone(), false);
    assert_eq!((follow.counters.events, follow.counters.lost), (0, 1));
    follow.drained();
    assert_eq!(told(&mut follow, START), all());
    assert!(follow.is_settled());
}

#[test]
fn a_datagram_that_is_cut_off_is_a_loss() {
    for (bytes, truncated) in [(address_gone(), true), (address_gone()[..20].to_vec(), false)] {
        let mut follow = settled();
        follow.datagram(START, &bytes, truncated);
        follow.drained();
        assert_eq!(told(&mut follow, START), all());
        assert_eq!(follow.counters.truncated + follow.counters.malformed, 1);
    }
}

#[test]
fn what_an_event_leaves_open_is_read_when_it_is_quiet() {
    let mut follow = settled();
    let at = |ms| Duration::from_millis(ms);
    follow.datagram(at(10), &address_gone(), false);
    assert_eq!(told(&mut follow, at(10)), [Object::Addresses]);
    assert!(!follow.is_settled());
    follow.datagram(at(80), &address_gone(), false);
    assert_eq!((told(&mut follow, at(150)), follow.patience(at(150))), (vec![Object::Addresses], at(30)));
    assert_eq!(told(&mut follow, at(180)), [Object::Routes4]);
    assert!(follow.is_settled());
}

#[test]
fn without_quiet_it_is_read_after_two_seconds() {
    let mut follow = settled();
    let read = (0..50).map(|n| Duration::from_millis(n * 50)).find(|now| {
        follow.datagram(*now, &address_gone(), false);
        told(&mut follow, *now).contains(&Object::Routes4)
    });
    assert_eq!(read, Some(Duration::from_secs(2)));
}

#[test]
fn a_dump_that_is_torn_is_made_again_and_not_for_ever() {
    let mut follow = settled();
    follow.datagram(START, &address_gone(), false);
    for _ in 0..5 {
        assert_eq!(follow.due(START), Some(Object::Addresses));
        follow.dumped(START, Object::Addresses, Snapshot::default(), Progress::Torn);
    }
    assert_eq!((follow.due(START), follow.counters.torn), (None, 5));
    // What it told is taken, and looked at once more when it is quiet.
    let later = told(&mut follow, Duration::from_millis(200));
    assert!(later.contains(&Object::Addresses) && follow.is_settled());
}

#[test]
fn a_dump_that_the_kernel_refuses_leaves_what_is_known() {
    let mut follow = settled();
    follow.datagram(START, &address_gone(), false);
    follow.dumped(START, Object::Addresses, Snapshot::default(), Progress::Refused(95));
    assert_eq!((follow.due(START), follow.counters.refused), (None, 1));
}

#[test]
fn settings_are_read_every_second_and_everything_is_checked_every_minute() {
    let mut follow = settled();
    assert_eq!(told(&mut follow, Duration::from_millis(1000)), [Object::Settings, Object::Devices]);
    assert_eq!(told(&mut follow, Duration::from_secs(61)), all());
    assert_eq!(follow.counters.checks, 1);
}

#[test]
fn a_set_of_objects_holds_what_was_put_in() {
    let mut set = Objects::of(&[Object::Routes6, Object::Devices]);
    assert_eq!((set.first(), set.contains(Object::Routes4)), (Some(Object::Devices), false));
    set.remove(Object::Devices);
    set.remove(Object::Routes6);
    assert!(set.is_empty());
}
