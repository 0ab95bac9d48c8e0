//! `noref replay` as an operator meets it: exit statuses, messages, what is written and what is not.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use port::Time;
use port::capture::{Reader, Writer};
use testkit::frame::{Ether, Ipv6, Udp};
use testkit::replay::Scratch;
use wire::Mac;

/// Two ports; what comes in at `e0` for 10.0.1.0/24 leaves by `e1`.
const NETWORK: &str = "\
sysctl -w net.ipv4.ip_forward=1
ip link set e0 address 02:00:00:00:0e:00 up
ip link set e1 address 02:00:00:00:0e:01 up
ip addr add 10.0.0.1/24 dev e0
ip addr add 10.0.1.1/24 dev e1
ip neigh replace 10.0.1.2 lladdr 02:00:00:00:0f:01 dev e1 nud permanent
";

/// A UDP packet from 10.0.0.2 to 10.0.1.2, and the same to 10.9.9.9 where no route leads.
fn frames() -> [Vec<u8>; 2] {
    [[10, 0, 1, 2], [10, 9, 9, 9]].map(|destination| {
        let mut ip = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2];
        ip.extend(destination);
        let sum = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let udp = [0x04, 0x57, 0x08, 0xae, 0, 8, 0, 0];
        [&[2, 0, 0, 0, 0x0e, 0, 2, 0, 0, 0, 0x0f, 0, 8, 0][..], &ip, &udp].concat()
    })
}

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (i, frame) in frames.iter().enumerate() {
        writer.write(Time::from_micros(i as u64 * 4_000), frame).unwrap();
    }
    writer.into_inner()
}

/// A directory with `network.ip` and `in.pcap`, in which the program runs.
struct Bench(Scratch);

impl Bench {
    fn new() -> Bench {
        let bench = Bench(Scratch::new());
        bench.write("network.ip", NETWORK);
        bench.write("in.pcap", capture(&frames()));
        bench
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn noref(&self, args: &str) -> Output {
        self.noref_fed(args, &[])
    }

    /// Runs the program with `input` as its standard input.
    fn noref_fed(&self, args: &str, input: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_noref"))
            .args(args.split(' '))
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// Packets of a capture with the times of their frames in microseconds.
    fn packets(&self, name: &str) -> Vec<(u64, Vec<u8>)> {
        let mut reader = Reader::open(&self.path(name)).unwrap();
        let mut pool = port::Pool::default();
        std::iter::from_fn(|| reader.next(&mut pool).unwrap().map(|packet| (packet.time.0 / 1_000, packet.buf.to_vec()))).collect()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const ARGS: &str = "replay --net network.ip --rx e0=in.pcap --port e0 e1 e2 --tx out/deep";

#[test]
fn every_port_gets_its_capture_and_the_result_is_told() {
    let bench = Bench::new();
    let output = bench.noref(ARGS);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("2 packets received, "), "{stdout}");
    assert!(stdout.contains("no_route"), "{stdout}");

    let sent = bench.packets("out/deep/e1.pcap");
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].0, &sent[0].1[..6], sent[0].1[22]), (0, &[2, 0, 0, 0, 0x0f, 1][..], 63));
    assert_eq!(fs::read(bench.path("out/deep/e2.pcap")).unwrap().len(), 24, "written also when empty");
}

#[test]
fn json_is_one_document_that_says_the_same() {
    let bench = Bench::new();
    let output = bench.noref(&format!("{ARGS} --json --refs counted"));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["layout"], &json["refs"], &json["packets"]), (&1.into(), &"counted".into(), &2.into()));
    assert_eq!(json["ports"][1]["port"], "e1");
    assert_eq!(json["ports"][1]["sent"]["packets"], 1);
    let drops = json["drops"].as_array().unwrap();
    assert!(drops.iter().any(|drop| drop["reason"] == "no_route" && drop["packets"] == 1), "{drops:?}");
}

#[test]
fn the_same_input_gives_the_same_output() {
    let bench = Bench::new();
    let (first, second) = (bench.noref(&format!("{ARGS} --trace")), bench.noref(&format!("{ARGS}2 --trace")));
    assert_eq!(text(&first.stdout), text(&second.stdout));
    for port in ["e0", "e1", "e2"] {
        let read = |dir: &str| fs::read(bench.path(&format!("out/{dir}/{port}.pcap"))).unwrap();
        assert_eq!(read("deep"), read("deep2"));
    }
}

#[test]
fn a_trace_tells_each_packet_s_way_step_by_step() {
    let bench = Bench::new();
    let output = bench.noref(&format!("{ARGS} --trace"));
    let stdout = text(&output.stdout);
    let steps = |frame: &str| -> Vec<String> {
        let (_, rest) = stdout.split_once(frame).unwrap_or_else(|| panic!("{frame:?} in {stdout}"));
        rest.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::to_owned).collect()
    };
    let stages = |steps: &[String]| steps.iter().filter_map(|step| step.split_whitespace().next().map(str::to_owned)).collect::<Vec<_>>();
    let forwarded = steps("frame 0 at 0.000000000 s");
    assert_eq!(stages(&forwarded), ["in", "lookup", "forward", "out"], "{stdout}");
    assert!(forwarded[1].contains("table main: 10.0.1.0/24"), "{stdout}");
    assert_eq!(stages(&steps("frame 1 at 0.004000000 s")).last().map(String::as_str), Some("drop"), "{stdout}");

    let json: serde_json::Value = serde_json::from_slice(&bench.noref(&format!("{ARGS} --trace --json")).stdout).unwrap();
    let (first, second) = (&json["trace"][0], &json["trace"][1]);
    assert_eq!((&first["frame"], &second["time"]), (&0.into(), &"0.004000000".into()));
    assert_eq!(first["steps"][3]["stage"], "out");
}

#[test]
fn raw_ip_packets_go_the_same_way_and_leave_in_ethernet_frames() {
    let bench = Bench::new();
    let raw = frames().map(|frame| frame[14..].to_vec());
    let mut bytes = capture(&raw);
    bytes[20] = 101;
    bench.write("raw.pcap", bytes);
    assert_eq!(bench.noref("replay --net network.ip --rx e0=raw.pcap --port e1 --tx raw").status.code(), Some(0));
    assert_eq!(bench.noref("replay --net network.ip --rx e0=in.pcap --port e1 --tx out").status.code(), Some(0));
    assert_eq!(bench.packets("raw/e1.pcap"), bench.packets("out/e1.pcap"));
}

#[test]
fn inputs_are_merged_by_time_and_standard_input_is_one_of_them() {
    let bench = Bench::new();
    let output = bench.noref_fed("replay --net network.ip --rx e0=in.pcap e0=- --port e1 --tx out", &capture(&frames()[..1]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("3 packets received"));
    assert_eq!(bench.packets("out/e1.pcap").len(), 2);
    let twice = bench.noref("replay --net network.ip --rx e0=- e1=- --tx twice");
    assert_eq!(twice.status.code(), Some(2));
    assert!(text(&twice.stderr).contains("standard input can be read only once"));
}

#[test]
fn a_capture_that_breaks_off_is_processed_up_to_there_and_said() {
    let bench = Bench::new();
    let mut broken = capture(&frames());
    broken.truncate(broken.len() - 5);
    bench.write("broken.pcap", broken);
    let output = bench.noref("replay --net network.ip --rx e0=broken.pcap --port e1 --tx out");
    assert_eq!(output.status.code(), Some(0));
    let place = "broken.pcap: it breaks off: a record of 58 bytes has only 53 (at byte 82, after 1 packet)";
    assert!(text(&output.stderr).contains(place), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(place), "{}", text(&output.stdout));
    assert_eq!(bench.packets("out/e1.pcap").len(), 1);
}

#[test]
fn what_can_not_be_used_is_refused_before_anything_is_written() {
    let bench = Bench::new();
    bench.write("text.pcap", "this is no capture");
    bench.write("cooked.pcap", {
        let mut bytes = capture(&frames());
        bytes[20] = 113;
        bytes
    });
    bench.write("empty.pcap", "");
    bench.write("bad.ip", "ip addr add 10.0.0.1/24 dev e0\nip route adt 10.0.9.0/24 via 10.0.0.2\n");
    bench.write("binary.ip", b"# caf\xc3\xa9\n# caf\xe9\n");
    bench.write("device.ip", "ip link set dev eth7 up\n");
    for (args, messages) in [
        ("replay --net absent.ip --rx e0=in.pcap --tx no", &["absent.ip", "No such file"][..]),
        ("replay --net network.ip --rx e0=absent.pcap --port e1 --tx no", &["absent.pcap: No such file"]),
        ("replay --net network.ip --rx e0=text.pcap --port e1 --tx no", &["text.pcap: it is no pcap or pcapng file"]),
        ("replay --net network.ip --rx e0=empty.pcap --port e1 --tx no", &["empty.pcap: it is empty"]),
        ("replay --net network.ip --rx e0=cooked.pcap --port e1 --tx no", &["cooked.pcap: link type 113 (Linux cooked capture"]),
        ("replay --net network.ip --rx e0=network.ip --port e1 --tx no", &["network.ip: it is no pcap"]),
        ("replay --net bad.ip --rx e0=in.pcap --tx no", &["bad.ip:2:10", "\"adt\"", "add"]),
        ("replay --net binary.ip --rx e0=in.pcap --tx no", &["binary.ip:2: the network file is to be text in UTF-8"]),
        ("replay --net device.ip --rx e0=in.pcap --port e1 --tx no", &["device.ip:1:17", "eth7", "e0", "e1"]),
        ("replay --net network.ip --rx e0 --tx no", &["PORT=CAPTURE"]),
        ("replay --net network.ip --rx e0=in.pcap --port ../e1 --tx no", &["a port's name has no blanks"]),
        ("replay --net network.ip --rx e0=in.pcap --port e1 --tx in.pcap", &["in.pcap: --tx names a directory, and this is none"]),
        ("replay --net network.ip --rx e0=in.pcap --tx no --refs atomic", &["possible values: noref, counted"]),
        ("fly", &["unrecognized subcommand 'fly'"]),
    ] {
        let output = bench.noref(args);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args}: {stderr}");
        for message in messages {
            assert!(stderr.contains(message), "{args}: expected {message:?} in {stderr}");
        }
        assert!(output.stdout.is_empty(), "{args}: {}", text(&output.stdout));
        assert!(!bench.path("no").exists(), "{args} wrote something");
    }
}

#[test]
fn a_capture_that_is_being_read_is_not_overwritten() {
    let bench = Bench::new();
    fs::create_dir(bench.path("out")).unwrap();
    fs::rename(bench.path("in.pcap"), bench.path("out/e0.pcap")).unwrap();
    let before = fs::read(bench.path("out/e0.pcap")).unwrap();
    let output = bench.noref("replay --net network.ip --rx e0=out/e0.pcap --port e1 --tx out");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("out/e0.pcap is read by this run"), "{}", text(&output.stderr));
    assert_eq!(fs::read(bench.path("out/e0.pcap")).unwrap(), before);
    assert!(!bench.path("out/e1.pcap").exists());
}

#[test]
fn a_capture_is_not_overwritten_under_another_name_or_from_standard_input_either() {
    let bench = Bench::new();
    fs::create_dir(bench.path("out")).unwrap();
    fs::hard_link(bench.path("in.pcap"), bench.path("out/e1.pcap")).unwrap();
    let before = fs::read(bench.path("in.pcap")).unwrap();
    for rx in ["in.pcap", "-"] {
        let output = Command::new(env!("CARGO_BIN_EXE_noref"))
            .args(["replay", "--net", "network.ip", "--rx", &format!("e0={rx}"), "--port", "e1", "--tx", "out"])
            .current_dir(bench.0.path())
            .stdin(fs::File::open(bench.path("in.pcap")).unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{rx}");
        assert!(text(&output.stderr).contains("out/e1.pcap is read by this run"), "{rx}: {}", text(&output.stderr));
        assert_eq!(fs::read(bench.path("in.pcap")).unwrap(), before, "{rx}");
        assert!(!bench.path("out/e0.pcap").exists(), "{rx}");
    }
}

#[test]
fn nothing_is_written_when_one_of_the_outputs_can_not_be() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("out/e2.pcap")).unwrap();
    bench.write("out/e1.pcap", "of an earlier run");
    let output = bench.noref("replay --net network.ip --rx e0=in.pcap --port e1 e2 --tx out");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("out/e2.pcap: Is a directory"), "{}", text(&output.stderr));
    assert!(!bench.path("out/e0.pcap").exists());
    assert_eq!(fs::read(bench.path("out/e1.pcap")).unwrap(), b"of an earlier run");
}

#[test]
fn steps_of_another_time_stand_under_that_time() {
    let bench = Bench::new();
    let network = NETWORK.lines().filter(|line| !line.contains("neigh")).collect::<Vec<_>>().join("\n");
    bench.write("network.ip", network);
    bench.write("in.pcap", capture(&frames()[..1]));
    let output = bench.noref(&format!("{ARGS} --trace"));
    // It waits for its neighbour for 3 s, and then the ICMP error for the neighbour that it came from.
    let times: Vec<_> = (0..7).map(|second| format!("{second}.000000000")).collect();
    let headings: Vec<_> = text(&output.stdout).lines().filter(|line| line.starts_with("frame ")).collect();
    let expected: Vec<_> = times.iter().map(|time| format!("frame 0 at {time} s")).collect();
    assert_eq!(headings, expected, "{}", text(&output.stdout));

    let json: serde_json::Value = serde_json::from_slice(&bench.noref(&format!("{ARGS} --trace --json")).stdout).unwrap();
    let parts: Vec<_> = json["trace"].as_array().unwrap().iter().map(|part| part["time"].as_str().unwrap()).collect();
    assert_eq!(parts, times);
}

#[test]
fn a_trace_names_devices_as_the_network_file_does() {
    let bench = Bench::new();
    let lines = "sysctl net.ipv6.conf.all.forwarding=1 net.ipv6.conf.all.seg6_enabled=1 net.ipv6.conf.e0.seg6_enabled=1\n\
                 ip -6 route add fc00:1::e encap seg6local action End.X nh6 fe80::9 oif e1 dev e1\n";
    bench.write("network.ip", NETWORK.to_owned() + lines);
    let sid = "fc00:1::e".parse().unwrap();
    let frame =
        Ether::new(Mac([2, 0, 0, 0, 0x0e, 0]), Mac([2, 0, 0, 0, 0x0f, 0])) / Ipv6::new("fd00::2".parse().unwrap(), sid) / Udp::new(1, 2);
    bench.write("in.pcap", capture(&[frame.bytes()]));
    let output = bench.noref(&format!("{ARGS} --trace"));
    assert!(text(&output.stdout).contains("seg6local action End.X nh6 fe80::9 oif e1 dev e1"), "{}", text(&output.stdout));
}

#[test]
fn nobody_listening_on_standard_error_does_not_change_the_exit_status() {
    let bench = Bench::new();
    let mut whole = capture(&frames());
    whole.truncate(whole.len() - 5);
    bench.write("broken.pcap", whole);
    for (args, status) in
        [("replay --net absent.ip --rx e0=in.pcap --tx no", 2), ("replay --net network.ip --rx e0=broken.pcap --port e1 --tx out", 0)]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let program = Command::new(env!("CARGO_BIN_EXE_noref"))
            .args(args.split(' '))
            .current_dir(bench.0.path())
            .stdout(Stdio::null())
            .stderr(writer)
            .status();
        assert_eq!(program.unwrap().code(), Some(status), "{args}");
    }
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    let bench = Bench::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_noref"))
        .args(format!("{ARGS} --trace").split(' '))
        .current_dir(bench.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    assert_eq!(bench.packets("out/deep/e1.pcap").len(), 1);
}

#[test]
fn help_names_units_and_exit_statuses() {
    let bench = Bench::new();
    let output = bench.noref("replay --help");
    assert_eq!(output.status.code(), Some(0));
    for part in ["Examples:", "Exit status:", "sizes in bytes", "[default: noref]", "<PORT=CAPTURE>"] {
        assert!(text(&output.stdout).contains(part), "{part}");
    }
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/replay.md").exists(), "--help names docs/replay.md");
}

#[test]
fn a_route_that_expires_is_gone_after_its_time_which_begins_with_the_first_packet() {
    let bench = Bench::new();
    let network = "\
sysctl -w net.ipv6.conf.all.forwarding=1
ip link set e0 address 02:00:00:00:0e:00 up
ip link set e1 address 02:00:00:00:0e:01 up
ip -6 addr add fd00::1/64 dev e0 nodad
ip -6 addr add fd00:1::1/64 dev e1 nodad
ip -6 neigh replace fd00:1::2 lladdr 02:00:00:00:0f:01 dev e1 nud permanent
ip -6 route add 2001:db8::/32 via fd00:1::2 expires 2
";
    bench.write("network.ip", network);
    let ether = Ether::new(Mac([2, 0, 0, 0, 0x0e, 0]), Mac([2, 0, 0, 0, 0x0f, 0]));
    let ip = Ipv6::new("fd00::2".parse().unwrap(), "2001:db8::9".parse().unwrap());
    let frame = (ether / ip / Udp::new(1111, 2222) / b"data").bytes();
    let mut writer = Writer::new(Vec::new()).unwrap();
    let begin = 1_700_000_000_000_000;
    for after in [0, 1_980_000, 2_010_000, 9_000_000] {
        writer.write(Time::from_micros(begin + after), &frame).unwrap();
    }
    bench.write("in.pcap", writer.into_inner());
    let output = bench.noref("replay --net network.ip --rx e0=in.pcap --port e1 --tx out");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let times: Vec<_> = bench.packets("out/e1.pcap").iter().map(|(time, _)| time - begin).collect();
    assert_eq!(times, [0, 1_980_000]);
}
