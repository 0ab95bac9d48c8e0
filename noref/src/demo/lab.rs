//! The lab: three routers and four sites, each a network namespace, and the links between them.

use std::path::{Path, PathBuf};
use std::thread;

use port::live::Device;

use crate::lab::SETTINGS;
use crate::lab::directory::Directory;
use crate::lab::namespace::Namespace;
use crate::threads::join;

/// A router.
pub struct RouterPlan {
    /// As people call it.
    pub name: &'static str,
    /// Its namespace, behind the lab's prefix.
    pub place: &'static str,
    /// Its interfaces.
    pub ports: &'static [&'static str],
    /// What an operator types there.
    lines: &'static str,
}

/// The routers, from west to east.
pub const ROUTERS: [RouterPlan; 3] = [
    RouterPlan { name: "edge west", place: "west", ports: &["blue0", "core0", "red0"], lines: include_str!("net/west.ip") },
    RouterPlan { name: "core", place: "core", ports: &["east0", "west0"], lines: include_str!("net/core.ip") },
    RouterPlan { name: "edge east", place: "east", ports: &["blue0", "core0", "red0"], lines: include_str!("net/east.ip") },
];

/// A site of a tenant.
struct SitePlan {
    place: &'static str,
    /// The router it hangs on, as its place in [`ROUTERS`], and the interface there.
    router: usize,
    port: &'static str,
    lines: &'static str,
}

const SITES: [SitePlan; 4] = [
    SitePlan { place: "red-west", router: 0, port: "red0", lines: include_str!("net/red-west.ip") },
    SitePlan { place: "blue-west", router: 0, port: "blue0", lines: include_str!("net/blue-west.ip") },
    SitePlan { place: "red-east", router: 2, port: "red0", lines: include_str!("net/red-east.ip") },
    SitePlan { place: "blue-east", router: 2, port: "blue0", lines: include_str!("net/blue-east.ip") },
];

/// The interface of each site.
const UPLINK: &str = "uplink";

/// What all names begin with; behind it stand the process that made them and what they are.
pub const PREFIX: &str = "noref-demo-";

/// The lab; gone with this value, unless it was left.
pub struct Lab {
    routers: Vec<Namespace>,
    sites: Vec<Namespace>,
    directory: Directory,
    prefix: String,
}

impl Lab {
    /// Makes it.
    ///
    /// # Errors
    /// What could not be done and why. Then nothing is left of it.
    pub fn new() -> Result<Lab, String> {
        let prefix = format!("{PREFIX}{}", std::process::id());
        let path = PathBuf::from(format!("/run/{prefix}"));
        // For this user alone.
        let directory = Directory::new(path.clone(), 0o700)
            .map_err(|error| format!("{}: {error}; `noref demo --down` takes away what an earlier demo left", path.display()))?;
        let make = |place: &str| Namespace::new(format!("{prefix}-{place}"));
        let routers = ROUTERS.iter().map(|router| make(router.place)).collect::<Result<Vec<_>, _>>()?;
        let sites = SITES.iter().map(|site| make(site.place)).collect::<Result<Vec<_>, _>>()?;
        let lab = Lab { routers, sites, directory, prefix };
        lab.all().try_for_each(|namespace| namespace.configure(SETTINGS))?;
        lab.connect()?;
        let lines = ROUTERS.iter().map(|router| router.lines).chain(SITES.iter().map(|site| site.lines));
        thread::scope(|scope| {
            let configured: Vec<_> = lab.all().zip(lines).map(|(namespace, lines)| scope.spawn(|| namespace.configure(lines))).collect();
            configured.into_iter().try_for_each(join)
        })?;
        Ok(lab)
    }

    fn connect(&self) -> Result<(), String> {
        let cable = |here: &Namespace, port: &str, there: &Namespace, far: &str| {
            here.configure(&format!("ip link add {port} type veth peer name {far} netns {}", there.name()))
        };
        let [west, core, east] = self.routers.as_slice() else { return Ok(()) };
        cable(west, "core0", core, "west0")?;
        cable(core, "east0", east, "core0")?;
        for (site, namespace) in SITES.iter().zip(&self.sites) {
            let Some(router) = self.routers.get(site.router) else { continue };
            cable(router, site.port, namespace, UPLINK)?;
            // Else a site sends checksums unfinished and segments put together, for a card that is not there: what is in a tunnel then stays so.
            namespace.inside(|| {
                let set = Device::named(UPLINK).and_then(|device| device.set_finishes_checksums(false));
                set.map_err(|error| format!("{}: {UPLINK}: {error}", namespace.name()))
            })?;
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &Namespace> {
        self.routers.iter().chain(&self.sites)
    }

    /// How many namespaces it is made of.
    pub fn size(&self) -> usize {
        self.all().count()
    }

    /// What the names of its namespaces begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The routers' namespaces, as in [`ROUTERS`].
    pub fn routers(&self) -> impl Iterator<Item = &Namespace> {
        self.routers.iter()
    }

    /// The namespace of this place.
    ///
    /// # Errors
    /// When there is none.
    pub fn at(&self, place: &str) -> Result<&Namespace, String> {
        let places = ROUTERS.iter().map(|router| router.place).chain(SITES.iter().map(|site| site.place));
        let found = places.zip(self.all()).find(|(known, _)| *known == place);
        found.map(|(_, namespace)| namespace).ok_or_else(|| format!("the lab has no {place}"))
    }

    /// Where sockets and logs are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Leaves it there.
    pub fn leave(self) {
        self.directory.leave();
        self.routers.into_iter().chain(self.sites).for_each(Namespace::leave);
    }
}
