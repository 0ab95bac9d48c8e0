//! The instructions of the [`filter`](super::filter).

use super::bpf::Map;
use super::context::{DATA, DATA_END, PASS, QUEUE, need, number};
use super::{Alu, Asm, AsmError, Cond, Frame, Helper, Insn, Label, Reg, Size};

// Offsets in the value of `station`: the MAC comes first.
pub(super) const VRF: i16 = 8;
// Offsets in the frame.
const ETHER_TYPE: i16 = 12;
const TAG_LEN: i16 = 4;
const TAG_CONTROL: i16 = 14;
const VLAN_ID: i32 = 0xfff;
const VLAN_8021Q: i32 = 0x8100;
const VLAN_8021AD: i32 = 0x88a8;
const IP: i16 = 14;
const DESTINATION4: i16 = IP + 16;
const END4: i32 = 34;
const NEXT_HEADER: i16 = IP + 6;
const DESTINATION6: i16 = IP + 24;
const END6: i32 = 54;
const ICMP6_TYPE: i16 = END6 as i16;
const ICMP6: i32 = 58;

/// The program that asks what the head of `filter` says, in that order. R6 is the context, R7 the frame's first byte (of a frame with tags the byte from
/// which its IP header stands where it would without), R8 the one behind its last, R9 the table of its VRF.
pub(super) fn assemble(
    sockets: &Map,
    station: &Map,
    vlans: &Map,
    own4: &Map,
    own6: &Map,
    without_socket: i32,
) -> Result<Vec<Insn>, AsmError> {
    use Reg::*;
    let mut asm = Asm::default();
    let (pass, tagged, untagged, ipv6, redirect) = (asm.label(), asm.label(), asm.label(), asm.label(), asm.label());
    asm.alu64(Alu::Move, R6, R1);
    asm.load(Size::Word, R7, R6, DATA);
    asm.load(Size::Word, R8, R6, DATA_END);
    need(&mut asm, END4, pass);
    leave_other_stations(&mut asm, station, pass);
    asm.load(Size::Word, R9, R1, VRF);

    asm.load(Size::Half, R2, R7, ETHER_TYPE);
    asm.network16(R2);
    asm.jump_if(Cond::Eq, R2, VLAN_8021Q, tagged);
    asm.jump_if(Cond::Ne, R2, VLAN_8021AD, untagged);
    asm.bind(tagged);
    take_tags(&mut asm, vlans, pass);

    asm.bind(untagged);
    asm.jump_if(Cond::Eq, R2, 0x86dd, ipv6);
    asm.jump_if(Cond::Ne, R2, 0x0800, pass);
    leave_ip4(&mut asm, own4, pass);
    asm.jump(redirect);

    asm.bind(ipv6);
    need(&mut asm, END6, pass);
    leave_ip6(&mut asm, own6, pass);

    asm.bind(redirect);
    to_socket(&mut asm, sockets, without_socket);

    asm.bind(pass);
    asm.alu64(Alu::Move, R0, PASS);
    asm.exit();
    asm.finish()
}

/// To `pass` with a frame whose tags are nobody's. The others go on with the table of their VRF in R9, the type behind their tags in R2, and R7 as if they
/// had none. The 34 bytes that are there hold two tags and that type.
fn take_tags(asm: &mut Asm, vlans: &Map, pass: Label) {
    use Reg::*;
    let (second, last) = (asm.label(), asm.label());
    let tag = |asm: &mut Asm, key: i16| {
        asm.load(Size::Half, R3, R7, ETHER_TYPE);
        asm.store(Size::Half, Frame, key, R3);
        asm.load(Size::Half, R3, R7, TAG_CONTROL);
        asm.network16(R3);
        asm.alu64(Alu::And, R3, VLAN_ID);
        asm.store(Size::Half, Frame, key + 2, R3);
        asm.alu64(Alu::Add, R7, i32::from(TAG_LEN));
        asm.load(Size::Half, R2, R7, ETHER_TYPE);
        asm.network16(R2);
    };
    tag(asm, -8);
    asm.store(Size::Word, Frame, -4, 0);
    asm.jump_if(Cond::Eq, R2, VLAN_8021Q, second);
    asm.jump_if(Cond::Ne, R2, VLAN_8021AD, last);
    asm.bind(second);
    tag(asm, -4);
    asm.bind(last);
    asm.map(R1, number(vlans));
    asm.alu64(Alu::Move, R2, Frame);
    asm.alu64(Alu::Add, R2, -8);
    asm.call(Helper::MapLookup);
    asm.jump_if(Cond::Eq, R0, 0, pass);
    asm.load(Size::Word, R9, R0, 0);
    need(asm, END4, pass);
    asm.load(Size::Half, R2, R7, ETHER_TYPE);
    asm.network16(R2);
}

/// To `pass` with a frame that is not to the port's MAC.
fn leave_other_stations(asm: &mut Asm, station: &Map, pass: Label) {
    asm.map_value(Reg::R1, number(station), 0);
    for (size, offset) in [(Size::Word, 0), (Size::Half, 4)] {
        asm.load(size, Reg::R2, Reg::R1, offset);
        asm.load(size, Reg::R3, Reg::R7, offset);
        asm.jump_if(Cond::Ne, Reg::R2, Reg::R3, pass);
    }
}

/// To `pass` with an IPv4 packet that is multicast, broadcast or to an own address.
fn leave_ip4(asm: &mut Asm, own4: &Map, pass: Label) {
    use Reg::*;
    asm.load(Size::Word, R2, R7, DESTINATION4);
    asm.store(Size::Word, Frame, -4, R2);
    asm.network32(R2);
    asm.alu64(Alu::Move, R3, R2);
    asm.alu64(Alu::ShiftRight, R3, 28);
    asm.jump_if(Cond::Eq, R3, 0xe, pass);
    // The immediate of a 64-bit comparison would be sign-extended.
    asm.jump_if32(Cond::Eq, R2, -1, pass);
    leave_own(asm, own4, 4, pass);
}

/// To `pass` with an IPv6 packet that is multicast, to a link-local or an own address, or of neighbour discovery.
fn leave_ip6(asm: &mut Asm, own6: &Map, pass: Label) {
    use Reg::*;
    asm.load(Size::Half, R2, R7, DESTINATION6);
    asm.network16(R2);
    asm.jump_if(Cond::Ge, R2, 0xff00, pass);
    asm.alu64(Alu::And, R2, 0xffc0);
    asm.jump_if(Cond::Eq, R2, 0xfe80, pass);
    let no_discovery = asm.label();
    asm.load(Size::Byte, R2, R7, NEXT_HEADER);
    asm.jump_if(Cond::Ne, R2, ICMP6, no_discovery);
    need(asm, END6 + 1, pass);
    asm.load(Size::Byte, R2, R7, ICMP6_TYPE);
    asm.jump_if(Cond::Lt, R2, 133, no_discovery);
    asm.jump_if(Cond::Le, R2, 137, pass);
    asm.bind(no_discovery);
    // By words: the address is aligned to two bytes only, which not every machine loads eight of.
    for offset in [0, 4, 8, 12] {
        asm.load(Size::Word, R2, R7, DESTINATION6 + offset);
        asm.store(Size::Word, Frame, -16 + offset, R2);
    }
    leave_own(asm, own6, 16, pass);
}

/// To `pass` when the address at the end of the stack, of so many bytes, is in the map for every VRF or for the one whose table is in R9.
fn leave_own(asm: &mut Asm, own: &Map, bytes: i16, pass: Label) {
    let key = -bytes - 4;
    let look = |asm: &mut Asm| {
        asm.map(Reg::R1, number(own));
        asm.alu64(Alu::Move, Reg::R2, Frame);
        asm.alu64(Alu::Add, Reg::R2, i32::from(key));
        asm.call(Helper::MapLookup);
        asm.jump_if(Cond::Ne, Reg::R0, 0, pass);
    };
    let no_vrf = asm.label();
    asm.store(Size::Word, Frame, key, 0);
    look(asm);
    asm.jump_if(Cond::Eq, Reg::R9, 0, no_vrf);
    asm.store(Size::Word, Frame, key, Reg::R9);
    look(asm);
    asm.bind(no_vrf);
}

/// The program that asks nothing.
pub(super) fn assemble_all(sockets: &Map, without_socket: i32) -> Result<Vec<Insn>, AsmError> {
    let mut asm = Asm::default();
    asm.alu64(Alu::Move, Reg::R6, Reg::R1);
    to_socket(&mut asm, sockets, without_socket);
    asm.finish()
}

/// Ends a program: the frame of the context in R6 goes to the socket of its queue.
fn to_socket(asm: &mut Asm, sockets: &Map, without_socket: i32) {
    asm.map(Reg::R1, number(sockets));
    asm.load(Size::Word, Reg::R2, Reg::R6, QUEUE);
    asm.alu64(Alu::Move, Reg::R3, without_socket);
    asm.call(Helper::RedirectMap);
    asm.exit();
}
