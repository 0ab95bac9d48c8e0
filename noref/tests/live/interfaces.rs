//! Devices that go and come while noref forwards beside the kernel.

use std::time::Duration;

use serde_json::Value;
use testkit::network;

use crate::bed::Bed;

/// How long it may take until noref forwards by a device that came back.
const PATIENCE: Duration = Duration::from_secs(15);

/// What [`network::plain`] says of e1: Linux forgets some of it when a device goes down, all when it goes away.
fn lines_of_e1() -> String {
    network::plain().lines().filter(|line| line.contains("e1")).map(|line| line.replace(" add ", " replace ") + "\n").collect()
}

/// Waits until noref has the port and its neighbour, then looks whether it forwards.
fn assert_it_comes_back(bed: &Bed, when: &str) {
    bed.wait_until(when, PATIENCE, |bed| {
        let up = bed
            .router
            .show("ports")
            .iter()
            .any(|row| row.get("port") == Some(&Value::from("e1")) && row.get("up") == Some(&Value::Bool(true)));
        let known = bed.router.show("neighbours").iter().any(|row| row.get("address") == Some(&Value::from("10.0.1.2")));
        up && known && bed.traffic(Duration::from_millis(50)).lost() == 0
    });
    bed.assert_it_forwards(when);
}

#[test]
fn a_device_goes_down_and_up() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    bed.assert_it_forwards("at first");
    for end in [&bed.lab.router, &bed.lab.far] {
        end.ip("link set e1 down").unwrap();
        bed.traffic(Duration::from_millis(200));
        end.ip("link set e1 up").unwrap();
        bed.lab.configure_kernel(&lines_of_e1()).unwrap();
        assert_it_comes_back(&bed, "up again");
    }
    assert!(bed.router.stop().status.success());
}

#[test]
fn a_device_gets_another_name_and_its_own_again() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    bed.assert_it_forwards("at first");
    bed.lab.router.ip("link set e1 down").unwrap();
    bed.lab.router.ip("link set e1 name east").unwrap();
    bed.lab.router.ip("link set east up").unwrap();
    bed.lab.configure_kernel(&lines_of_e1().replace("e1", "east")).unwrap();
    let told = bed.traffic(Duration::from_secs(1));
    assert!(told.received > 0, "noref or the kernel forwards: {told:?}");
    bed.lab.router.ip("link set east down").unwrap();
    bed.lab.router.ip("link set east name e1").unwrap();
    bed.lab.router.ip("link set e1 up").unwrap();
    bed.lab.configure_kernel(&lines_of_e1()).unwrap();
    assert_it_comes_back(&bed, "with its name");
    assert!(bed.router.stop().status.success());
}

#[test]
fn a_device_is_deleted_and_made_again() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    bed.assert_it_forwards("at first");
    bed.lab.router.ip("link del e1").unwrap();
    bed.lab.add_port("e1").unwrap();
    bed.lab.configure_kernel(&lines_of_e1()).unwrap();
    assert_it_comes_back(&bed, "made again");
    assert!(bed.router.stop().status.success());
}
