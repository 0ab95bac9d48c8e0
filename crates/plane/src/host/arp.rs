//! ARP (RFC 826, Linux `arp_process`): answering for the router's addresses, asking for others.

use std::net::{IpAddr, Ipv4Addr};

use route::{DropReason, IfIndex};
use wire::{EtherType, Mac, arp, eth};
use zerocopy::IntoBytes;

use super::resolver::Told;
use super::{Cause, Host};
use crate::context::Context;
use crate::ip4_input::{Addresses, check_addresses};
use crate::packet::{Addressed, Packet};
use crate::source4;
use crate::trace::Ledger;

impl Host {
    /// An ARP packet came in.
    pub(super) fn arp(&mut self, cx: &Context<'_, '_>, packet: Packet, ledger: &mut Ledger) {
        let Some(&message) = arp::Packet::read(&packet.buf) else { return self.drop(packet, DropReason::BadArp, ledger) };
        let (sender, target) = (message.sender(), message.target());
        let operation = message.operation();
        if !matches!(operation, arp::REQUEST | arp::REPLY) || target.is_multicast() || target.is_loopback() || message.sender_mac.is_group()
        {
            return self.drop(packet, DropReason::BadArp, ledger);
        }
        let cause = Cause::from(&packet);
        let dev = packet.iif;
        let key = (dev, IpAddr::V4(sender));
        // A probe for a duplicate (RFC 5227) is answered, but there is nobody to learn.
        let believable =
            || check_addresses(sender, target) == Ok(Addresses::Route) && source4::check(cx, &packet, sender, source4::To::Router).is_ok();
        if operation == arp::REQUEST && self.is_local4(cx, target, dev) && (sender.is_unspecified() || believable()) {
            if !sender.is_unspecified() {
                self.learn(cx, key, message.sender_mac, Told::ToUs, cause, ledger);
            }
            let Some(link) = cx.links.get(dev) else { return self.drop(packet, DropReason::PortDown, ledger) };
            let reply = arp::Packet::new(arp::REPLY, link.mac, target, message.sender_mac, sender);
            self.send_arp(cx, dev, message.sender_mac, &reply, cause, ledger);
            return self.delivered(packet, || format!("ARP request for {target} answered"), ledger);
        }
        let answer = operation == arp::REPLY && packet.addressed == Addressed::Host;
        let told = if answer { Told::InAnswer } else { Told::InPassing };
        if operation == arp::REQUEST && !cx.links.is_own4(target) {
            // Somebody else is meant; what it tells about the sender updates a known neighbour only.
            self.learn(cx, key, message.sender_mac, Told::InPassing, cause, ledger);
            return self.drop(packet, DropReason::BadArp, ledger);
        }
        self.learn(cx, key, message.sender_mac, told, cause, ledger);
        self.delivered(packet, || format!("ARP from {sender}"), ledger);
    }

    /// Asks who has `target`, from `source` if that is one of the router's addresses.
    #[expect(clippy::too_many_arguments, reason = "the fields of the request, and where to write it down")]
    pub(super) fn arp_request(
        &mut self,
        cx: &Context<'_, '_>,
        dev: IfIndex,
        target: Ipv4Addr,
        source: Option<Ipv4Addr>,
        known: Option<Mac>,
        cause: Cause,
        ledger: &mut Ledger,
    ) {
        let Some(link) = cx.links.get(dev) else { return };
        let own = source.filter(|source| cx.links.is_own4(*source));
        let Some(sender) = own.or_else(|| cx.links.source4(dev, target)) else { return };
        let request = arp::Packet::new(arp::REQUEST, link.mac, sender, Mac::default(), target);
        self.send_arp(cx, dev, known.unwrap_or(Mac::BROADCAST), &request, cause, ledger);
    }

    fn send_arp(&mut self, cx: &Context<'_, '_>, dev: IfIndex, to: Mac, message: &arp::Packet, cause: Cause, ledger: &mut Ledger) {
        let Some(link) = cx.links.get(dev) else { return };
        let mut frame = [0; eth::LEN + arp::LEN];
        frame[..eth::LEN].copy_from_slice(eth::Header::new(to, link.mac, EtherType::ARP).as_bytes());
        frame[eth::LEN..].copy_from_slice(message.as_bytes());
        self.emit_frame(cx, cause, dev, &frame, ledger);
    }
}
