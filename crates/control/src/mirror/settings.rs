//! Settings of the router as a whole, from `/proc/sys`. Those of interfaces come with the devices.

use std::fs;
use std::path::Path;

use route::Settings;

use crate::sysctl::{Effect, SYSCTLS, Sysctl};

/// Reads the settings under `root` (`/proc/sys`), of the network namespace of the calling thread. A file that is not there leaves the default: older kernels
/// have fewer.
pub fn read(root: &Path) -> Settings {
    let mut settings = Settings::default();
    for sysctl in SYSCTLS {
        let value = |device: &str| value(root, sysctl, device);
        match sysctl.effect {
            Effect::Router(set) => {
                if let Some(value) = value("") {
                    set(&mut settings, value);
                }
            }
            Effect::Conf4(set) => {
                for (device, conf) in [("all", &mut settings.all4), ("default", &mut settings.default4)] {
                    if let Some(value) = value(device) {
                        set(conf, value);
                    }
                }
            }
            Effect::Conf6(set) => {
                for (device, conf) in [("all", &mut settings.all6), ("default", &mut settings.default6)] {
                    if let Some(value) = value(device) {
                        set(conf, value);
                    }
                }
            }
            // `ip_forward` is `conf.all.forwarding` under another name; the others are done above or below.
            Effect::Checked(_) | Effect::Always => {}
        }
    }
    let strict = SYSCTLS.iter().find(|sysctl| sysctl.name == "net.vrf.strict_mode");
    settings.vrf_strict_mode = strict.and_then(|sysctl| value(root, sysctl, "")).is_some_and(|on| on != 0);
    settings
}

/// The value of a setting, brought into the range that noref knows.
fn value(root: &Path, sysctl: &Sysctl, device: &str) -> Option<i64> {
    let file: std::path::PathBuf = sysctl.name.split('.').map(|part| if part == "*" { device } else { part }).collect();
    let text = fs::read_to_string(root.join(file)).ok()?;
    let number: i64 = text.trim().parse().ok()?;
    Some(number.clamp(sysctl.least, sysctl.most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_where_they_are_and_defaults_stay_where_they_are_not() {
        let root = std::env::temp_dir().join(format!("noref-mirror-settings-{}", std::process::id()));
        for (file, text) in [
            ("net/ipv4/ip_default_ttl", "77\n"),
            ("net/ipv4/conf/all/rp_filter", "9"),
            ("net/ipv6/conf/default/seg6_enabled", "1"),
            ("net/ipv6/seg6_flowlabel", "what"),
            ("net/vrf/strict_mode", "1"),
        ] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let settings = read(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((settings.default_ttl, settings.all4.rp_filter, settings.seg6_flowlabel), (77, 2, 0));
        assert!(settings.default6.seg6_enabled && settings.vrf_strict_mode && !settings.all6.seg6_enabled);
    }
}
