//! Devices, their addresses and neighbours, and settings.

use std::net::{IpAddr, Ipv4Addr};

use ::route::{AddrSpec, ConfigError, LinkChange, VlanTag};
use srv6::HmacKeys;

use super::{Applier, at};
use crate::addr::{AddressCommand, AddressOperation, Broadcast};
use crate::address::{Family, Prefix};
use crate::device_type::DeviceType;
use crate::error::Error;
use crate::link::{LinkChanges, LinkCommand, Master};
use crate::neigh::{NeighbourCommand, NeighbourOperation};
use crate::span::{Spanned, Word};
use crate::sr::SrCommand;
use crate::sysctl::{Effect, Setting, Target};

impl Applier<'_> {
    pub(super) fn link(&mut self, command: &LinkCommand<'_>) -> Result<(), Error> {
        match command {
            LinkCommand::Add { device, below, kind, changes } => {
                self.link_add(*device, *below, kind)?;
                self.link_set(*device, changes)
            }
            LinkCommand::Set { device, changes, vlan } => {
                if let Some(change) = vlan {
                    let index = self.device(*device)?;
                    self.editor.vlan_change(index, &change.value).map_err(at(change.span))?;
                }
                self.link_set(*device, changes)
            }
            LinkCommand::Delete { device } => {
                let index = self.device(*device)?;
                self.editor.link_del(index).map_err(at(device.span))
            }
        }
    }

    fn link_add(&mut self, device: Word<'_>, below: Option<Word<'_>>, kind: &DeviceType) -> Result<(), Error> {
        let (added, span) = match kind {
            DeviceType::Vrf(table) => (self.editor.vrf_add(device.text, table.value), table.span),
            DeviceType::Vlan(vlan) => {
                let parent = self.device(below.unwrap_or(device))?;
                let tag = VlanTag { parent, protocol: vlan.protocol, id: vlan.id.value };
                (self.editor.vlan_add(device.text, tag, &vlan.change), vlan.id.span)
            }
            DeviceType::Dummy => (self.editor.dummy_add(device.text), device.span),
        };
        added.map(|_| ()).map_err(|error| match error {
            ConfigError::Exists("device") => {
                Error::refused(device.span, format!("the device \"{}\" exists already (File exists)", device.text))
            }
            other => at(span)(other),
        })
    }

    fn link_set(&mut self, device: Word<'_>, changes: &LinkChanges<'_>) -> Result<(), Error> {
        let index = self.device(device)?;
        let master = match changes.master {
            None => None,
            Some(Master::None) => Some(None),
            Some(Master::Device(master)) => {
                self.vrf(master)?;
                Some(Some(self.device(master)?))
            }
        };
        let change = LinkChange {
            mac: changes.address.map(|mac| mac.value),
            mtu: changes.mtu.map(|mtu| mtu.value),
            up: changes.up,
            master,
            group: changes.group.map(|group| group.value),
        };
        self.editor.link_set(index, change).map_err(at(changes.address.map_or(device.span, |mac| mac.span)))
    }

    pub(super) fn address(&mut self, command: &AddressCommand<'_>) -> Result<(), Error> {
        let device = self.device(command.device)?;
        let Spanned { value: Prefix { addr, len }, span } = command.address;
        if command.operation == AddressOperation::Delete {
            let missing = |_| Error::refused(span, format!("{addr}/{len} is not an address of {}", command.device.text));
            return self.editor.addr_del(device, addr, Some(len)).map_err(missing);
        }
        let broadcast = match (addr, command.broadcast) {
            (_, None) => None,
            (IpAddr::V6(_), Some(given)) => return Err(Error::refused(given.span, "an IPv6 address has no broadcast address")),
            (IpAddr::V4(addr), Some(given)) => broadcast(addr, len, given.value),
        };
        let has = self.editor.links().get(device).is_some_and(|link| link.has_addr(addr));
        if command.operation == AddressOperation::Change && Family::of(addr) == Family::V6 && !has {
            return Err(
                Error::refused(span, format!("{addr} is not an address of {}", command.device.text)).hint("\"ip address add\" adds it")
            );
        }
        let spec = AddrSpec {
            len,
            scope: command.scope.map(|scope| scope.value),
            broadcast,
            no_prefix_route: command.no_prefix_route,
            replace: command.operation != AddressOperation::Add,
        };
        self.editor.addr_add(device, addr, spec).map_err(|error| match error {
            ConfigError::Exists(_) => {
                let why = format!("{addr} is an address of {} already (File exists)", command.device.text);
                Error::refused(span, why).hint("\"ip address replace\" takes it all the same")
            }
            other => at(span)(other),
        })
    }

    pub(super) fn neighbour(&mut self, command: &NeighbourCommand<'_>) -> Result<(), Error> {
        let device = self.device(command.device)?;
        let Spanned { value: address, span } = command.address;
        let missing =
            || Error::refused(span, format!("{address} is not a neighbour on {} (No such file or directory)", command.device.text));
        if command.operation == NeighbourOperation::Delete {
            return self.editor.neighbour_del(device, address).map_err(|_| missing());
        }
        if command.operation == NeighbourOperation::Change && self.editor.neighbour(device, address).is_none() {
            return Err(missing());
        }
        let mac = command.lladdr.map(|mac| mac.value).unwrap_or_default();
        let replace = command.operation != NeighbourOperation::Add;
        self.editor.neighbour_put(device, address, command.state.value, mac, replace).map_err(|error| match error {
            ConfigError::Exists(_) => {
                let why = format!("{address} is a neighbour on {} already (File exists)", command.device.text);
                Error::refused(span, why).hint("\"ip neighbour replace\" takes its place")
            }
            other => at(span)(other),
        })
    }

    pub(super) fn sr(&mut self, command: &SrCommand<'_>) -> Result<(), Error> {
        match command {
            SrCommand::TunnelSource(source) => self.editor.settings_mut().seg6_tunsrc = source.value,
            SrCommand::Hmac { key, secret, .. } if secret.value.is_empty() => {
                if !self.hmac_keys().remove(key.value) {
                    return Err(Error::refused(
                        key.span,
                        format!("there is no key {} to take away (No such file or directory)", key.value),
                    ));
                }
            }
            SrCommand::Hmac { key, algorithm, secret } => {
                let set = self.hmac_keys().set(key.value, algorithm.value, secret.value.as_bytes());
                set.map_err(|error| Error::refused(secret.span, error.to_string()))?;
            }
        }
        Ok(())
    }

    fn hmac_keys(&mut self) -> &mut HmacKeys {
        self.hmac_keys.get_or_insert_with(|| self.committed_keys.clone())
    }

    pub(super) fn setting(&mut self, setting: &Setting<'_>) -> Result<(), Error> {
        let value = setting.value.value;
        let device = match &setting.target {
            Some(Target::Device(name, span)) => Some(self.named(name, *span)?.index),
            _ => None,
        };
        let default = setting.target == Some(Target::Default);
        let done = match setting.sysctl.effect {
            Effect::Checked(set) => set(self.editor, value),
            Effect::Router(set) => {
                set(self.editor.settings_mut(), value);
                Ok(())
            }
            Effect::Conf4(set) if default => {
                set(&mut self.editor.settings_mut().default4, value);
                Ok(())
            }
            Effect::Conf6(set) if default => {
                set(&mut self.editor.settings_mut().default6, value);
                Ok(())
            }
            Effect::Conf4(set) => self.editor.conf4(device, |conf| set(conf, value)),
            Effect::Conf6(set) => self.editor.conf6(device, |conf| set(conf, value)),
            Effect::Always => Ok(()),
        };
        done.map_err(at(setting.value.span))
    }
}

/// The broadcast address that `brd +` and `brd -` stand for; a subnet of one or two addresses has none.
fn broadcast(addr: Ipv4Addr, len: u8, given: Broadcast) -> Option<Ipv4Addr> {
    let host_bits = u32::MAX.checked_shr(u32::from(len)).unwrap_or(0);
    match given {
        Broadcast::Address(IpAddr::V4(address)) => Some(address),
        Broadcast::Address(IpAddr::V6(_)) => None,
        Broadcast::Last | Broadcast::First if len > 30 => None,
        Broadcast::Last => Some(Ipv4Addr::from(u32::from(addr) | host_bits)),
        Broadcast::First => Some(Ipv4Addr::from(u32::from(addr) & !host_bits)),
    }
}
