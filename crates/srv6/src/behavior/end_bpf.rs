//! End.BPF: run a BPF program on the packet. Known by name and number, so that it can be refused clearly.

use crate::descriptor::{Behavior, Descriptor};
use crate::{Attr, AttrSet, Attributes, BuildError, Flavors};

/// The row of End.BPF.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.BPF",
    number: 15,
    required: AttrSet::NONE,
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Run a BPF program (not implemented yet).",
    build,
};

fn build(_attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    Err(BuildError::NotImplemented { action: DESCRIPTOR.name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sid;

    #[test]
    fn it_is_refused_by_name() {
        let error = Sid::build(&DESCRIPTOR, &Attributes::default()).unwrap_err();
        assert_eq!(error.to_string(), "End.BPF is not implemented yet");
    }
}
