//! Why a SID or a policy cannot be configured.

use crate::{Attr, Flavors};

/// What is wrong with the configuration of a SID or a policy, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// An attribute that the action cannot do without is missing.
    #[error("{action} needs {}", .attr.usage())]
    Missing {
        /// The action.
        action: &'static str,
        /// The attribute.
        attr: Attr,
    },
    /// Both or neither of two attributes were given.
    #[error("{action} takes exactly one of `table N` (look up there) and `vrftable N` (enter that VRF)")]
    TableOrVrf {
        /// The action.
        action: &'static str,
    },
    /// The action does not have this flavour.
    #[error("{action} does not support flavor {unsupported}; {}", what_it_has(*.supported))]
    Flavor {
        /// The action.
        action: &'static str,
        /// The flavours that it does not have.
        unsupported: Flavors,
        /// The flavours that it has.
        supported: Flavors,
    },
    /// The length of a part of a compressed SID is not possible.
    #[error("{attr} {bits} is not a length of a compressed SID's part: a multiple of 8 from 8 to 120 is")]
    CsidLength {
        /// `lblen` or `nflen`.
        attr: Attr,
        /// The length given, bits.
        bits: u8,
    },
    /// The parts of a compressed SID do not fit an address.
    #[error("lblen {lblen} and nflen {nflen} are {} bits together, an address has 128", u16::from(*.lblen) + u16::from(*.nflen))]
    CsidSum {
        /// Locator block, bits.
        lblen: u8,
        /// Locator node and function, bits.
        nflen: u8,
    },
    /// The segment list is empty.
    #[error("a segment list needs at least one segment")]
    NoSegments,
    /// The segment list does not fit a routing header.
    #[error("{given} segments do not fit a routing header, at most {most} do here")]
    TooManySegments {
        /// Segments given.
        given: usize,
        /// Segments that fit.
        most: usize,
    },
    /// A noref to come will have it.
    #[error("{action} is not implemented yet")]
    NotImplemented {
        /// The action.
        action: &'static str,
    },
}

impl BuildError {
    /// The attribute at fault, if it is one.
    pub fn attr(&self) -> Option<Attr> {
        match self {
            BuildError::Missing { attr, .. } | BuildError::CsidLength { attr, .. } => Some(*attr),
            BuildError::TableOrVrf { .. } => Some(Attr::Table),
            BuildError::Flavor { .. } => Some(Attr::Flavors),
            BuildError::CsidSum { .. } => Some(Attr::Nflen),
            BuildError::NoSegments | BuildError::TooManySegments { .. } => Some(Attr::Srh),
            BuildError::NotImplemented { .. } => None,
        }
    }
}

fn what_it_has(flavors: Flavors) -> String {
    match flavors.is_empty() {
        true => "it has no flavors".to_owned(),
        false => format!("it supports {flavors}"),
    }
}
