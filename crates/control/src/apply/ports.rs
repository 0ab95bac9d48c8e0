//! The ports that a network file takes for granted.

use std::collections::BTreeSet;

use super::next_command;
use crate::command::Command;
use crate::lexer::Lexer;
use crate::link::LinkCommand;

/// The devices that `link` and `address` lines of a network file name and no line before has added, each once, in the order of the file: ports, if the file
/// is right. What is wrong with it [`network_file`](super::network_file) says.
pub fn ports_of(text: &str) -> Vec<String> {
    let (mut lexer, mut words) = (Lexer::new(text), Vec::new());
    let mut known = BTreeSet::from(["lo".to_owned()]);
    let mut ports = Vec::new();
    while let Some(command) = next_command(&mut lexer, &mut words) {
        let named = match &command {
            Ok(Command::Link(LinkCommand::Add { device, below, .. })) => {
                known.insert(device.text.to_owned());
                *below
            }
            Ok(Command::Link(LinkCommand::Set { device, .. })) => Some(*device),
            Ok(Command::Address(address)) => Some(address.device),
            _ => None,
        };
        if let Some(port) = named.filter(|device| known.insert(device.text.to_owned())) {
            ports.push(port.text.to_owned());
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_the_devices_that_no_line_adds() {
        let text = "\
link add red type vrf table 10
link set red up
link set e1 master red
addr add 10.0.0.1/24 dev e0
link add link e2 name e2.5 type vlan id 5
address add 10.0.5.1/24 dev e2.5
link set lo up
addr add 10.0.1.1/24 dev e1
route add 10.9.0.0/16 via 10.0.0.2 dev e7
";
        assert_eq!(ports_of(text), ["e1", "e0", "e2"]);
    }
}
