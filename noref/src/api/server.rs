//! What the control socket serves: requests, one after the other, until the client goes.
//!
//! A client can do little harm: there are only so many, a request is only so long, one that is silent or does not read for too long is let go.

use std::io::{self, BufReader, BufWriter, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use port::live::wait_readable;

use super::answer::{Answer, answer};
use super::language::{Budget, Parts};
use super::line::{self, NoLine};
use super::protocol::{Body, MAX_REQUEST, Refusal, Request};
use super::service::{Bounds, Service};
use super::socket::Socket;
use super::stream::{Listener, Stream};
use crate::run::Router;

const BOUNDS: Bounds = Bounds { clients: 32, silence: Duration::from_secs(300), stuck: Duration::from_secs(10) };

/// Answers for `router` at `socket`.
///
/// # Errors
/// When there are no threads or descriptors left.
pub fn start(router: Arc<Router>, socket: Socket) -> io::Result<Service> {
    let budget = Budget::default();
    let serve = move |stream: &Stream, admitted| if admitted { serve(&router, &budget, stream) } else { refuse(stream) };
    Service::start("noref-control", Listener::Unix(socket), BOUNDS, serve)
}

/// Answers a client's requests until it goes.
fn serve(router: &Router, budget: &Budget, stream: &Stream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = BufWriter::new(stream);
    let mut answers = Answer::new(&mut writer);
    let mut line = Vec::new();
    let mut parts = Parts::new(budget);
    loop {
        match line::read(&mut reader, &mut line, MAX_REQUEST) {
            Ok(()) => {}
            Err(NoLine::Ended | NoLine::Io(_)) => return Ok(()),
            Err(error @ NoLine::TooLong(_)) => {
                answers.last(Body::Error(Refusal::new(format!("a request is one line, and {error}"))))?;
                return drain(&mut reader);
            }
        }
        match Request::parse(&line).and_then(|request| parts.whole(request)) {
            Ok(None) => {}
            Ok(Some(request)) => {
                // A trace ends when its client does, or says anything more.
                let silent = reader.buffer().is_empty();
                let mut wanted = || silent && matches!(wait_readable(stream.as_fd(), Duration::ZERO), Ok(false));
                answer(router, request, &mut wanted, &mut answers)?;
            }
            Err(refusal) => answers.last(Body::Error(refusal))?,
        }
    }
}

/// Tells a client that there are too many.
fn refuse(mut stream: &Stream) -> io::Result<()> {
    let message = format!("{} clients are connected, which is all there may be: try again when one has gone", BOUNDS.clients);
    Answer::new(&mut stream).last(Body::Error(Refusal::new(message)))
}

/// Reads a little of what else was sent: a connection that is closed with bytes unread takes the reply with it.
fn drain(reader: &mut impl Read) -> io::Result<()> {
    io::copy(&mut reader.take(16 * MAX_REQUEST as u64), &mut io::sink()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::super::protocol::Reply;
    use super::super::testing::{Served, router};
    use super::*;

    const NETWORK: &str = "ip link set e0 up\nip addr add 10.0.0.1/24 dev e0\nip -6 addr add fd00::1/64 dev e0 nodad\n\
                           ip route add 10.9.0.0/16 via 10.0.0.2\n";

    #[test]
    fn requests_are_answered_one_after_the_other_on_one_connection() {
        let served = Served::new(&router(NETWORK, &["e0"]));
        let mut peer = served.connect();
        let ports = peer.ask("{\"v\":1,\"show\":{\"what\":\"ports\"}}");
        assert!(ports.starts_with("{\"v\":1,\"ports\":[{\"port\":\"e0\",\"driver\":\"memory\""), "{ports}");
        assert!(ports.contains("\"addresses\":[\"10.0.0.1/24\",\"fd00::1/64\""), "{ports}");
        assert_eq!(peer.ask("{\"v\":1,\"show\":{\"what\":\"mirror\"}}"), "{\"v\":1,\"mirror\":null}\n");
        let refused = peer.ask("{\"v\":3}");
        assert!(refused.contains("version 3 of the protocol is not known"), "{refused}");
        // A request that is wrong ends nothing.
        assert_eq!(peer.ask("{\"v\":1,\"show\":{\"what\":\"drops\"}}"), "{\"v\":1,\"drops\":[]}\n");
    }

    #[test]
    fn routes_come_in_several_lines_of_which_the_last_says_so() {
        let served = Served::new(&router(NETWORK, &["e0"]));
        let mut peer = served.connect();
        peer.send(b"{\"v\":1,\"show\":{\"what\":\"routes\"}}\n");
        let mut lines = vec![peer.line()];
        while lines.last().is_some_and(|line| line.ends_with("\"more\":true}\n")) {
            lines.push(peer.line());
        }
        let all = lines.concat();
        assert_eq!(lines.last().unwrap(), "{\"v\":1,\"routes\":[]}\n");
        assert!(
            all.contains("\"prefix\":\"10.9.0.0/16\",\"kind\":\"unicast\",\"ways\":[{\"dev\":\"e0\",\"via\":\"10.0.0.2\",\"weight\":1}]"),
            "{all}"
        );
    }

    #[test]
    fn a_long_table_comes_in_short_lines_each_route_once_and_in_order() {
        let route = |n: u32| format!("ip route add 20.{}.{}.0/24 via 10.0.0.2\n", n >> 8, n & 255);
        let network = NETWORK.to_owned() + &(0..3000).map(route).collect::<String>();
        let served = Served::new(&router(&network, &["e0"]));
        let mut peer = served.connect();
        peer.send(b"{\"v\":1,\"show\":{\"what\":\"routes\"}}\n");
        let mut prefixes = Vec::new();
        loop {
            let line = peer.line();
            assert!(line.len() < 64 * 1024, "{} bytes", line.len());
            let Reply { body: Body::Routes(rows), more, .. } = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
            prefixes.extend(rows.into_iter().filter(|row| row.prefix.starts_with("20.")).map(|row| row.prefix));
            if !more {
                break;
            }
        }
        let expected: Vec<_> = (0..3000_u32).map(|n| format!("20.{}.{}.0/24", n >> 8, n & 255)).collect();
        assert_eq!(prefixes, expected);
    }

    #[test]
    fn a_line_without_end_is_refused_and_the_connection_closed() {
        let served = Served::new(&router(NETWORK, &["e0"]));
        let mut peer = served.connect();
        peer.send(&vec![b'x'; MAX_REQUEST + 2]);
        let refused = peer.line();
        assert!(refused.contains("a request is one line, and a line is longer than 65536 bytes"), "{refused}");
        // A megabyte more is read and thrown away, and then no more.
        let mut raw = UnixStream::connect(&served.path).unwrap();
        let sent = (0..1024).map_while(|_| raw.write_all(&[b'x'; 64 * 1024]).ok()).count();
        assert!(sent < 1024, "64 MiB were taken");
    }

    #[test]
    fn damaged_requests_of_any_kind_do_not_end_the_server() {
        let served = Served::new(&router(NETWORK, &["e0"]));
        let whole = b"{\"v\":1,\"trace\":{\"filter\":{\"from\":\"10.0.0.0/8\",\"drop\":\"any\"},\"count\":1}}";
        let mut peer = served.connect();
        for at in 0..whole.len() - 1 {
            for damage in [0x00, 0x0a, 0x22, 0x7f, 0xff] {
                let mut bytes = whole[..at].to_vec();
                bytes.extend([damage, b'\n']);
                peer.send(&bytes);
            }
        }
        peer.send(&[b"{\"v\":1,\"show\":".as_slice(), &vec![b'['; 5000], b"\n"].concat());
        assert!(served.connect().ask("{\"v\":1,\"show\":{\"what\":\"rules\"}}").contains("\"action\":\"lookup main\""));
    }

    #[test]
    fn there_are_only_so_many_clients_and_one_that_goes_makes_room() {
        let served = Served::new(&router(NETWORK, &["e0"]));
        let ask = "{\"v\":1,\"show\":{\"what\":\"rules\"}}";
        let mut peers: Vec<_> = (0..BOUNDS.clients).map(|_| served.connect()).collect();
        assert!(peers.iter_mut().all(|peer| peer.ask(ask).contains("\"rules\"")));
        assert!(served.connect().line().contains("32 clients are connected"));
        peers.pop();
        let begin = Instant::now();
        while !served.connect().ask(ask).contains("\"rules\"") {
            assert!(begin.elapsed() < Duration::from_secs(10), "no room was made");
        }
    }

    #[test]
    fn a_trace_of_a_port_that_is_not_there_is_refused_and_one_without_workers_is_over_at_once() {
        let served = Served::new(&router(NETWORK, &["e0"]));
        let mut peer = served.connect();
        let refused = peer.ask("{\"v\":1,\"trace\":{\"filter\":{\"port\":\"e7\"}}}");
        assert!(refused.contains("no port is called \\\"e7\\\"\",\"accepted\":[\"e0\"]"), "{refused}");
        assert_eq!(peer.ask("{\"v\":1,\"trace\":{}}"), "{\"v\":1,\"traced\":{\"packets\":0,\"missed\":0}}\n");
    }
}
