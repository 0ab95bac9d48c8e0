//! As much of HTTP/1.1 (RFC 9112) as a scrape needs: one GET a connection, a reply of known length, and no more.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::metrics;
use super::service::{Bounds, Service};
use super::stream::{Listener, Stream};
use crate::run::Router;

const BOUNDS: Bounds = Bounds { clients: 8, silence: Duration::from_secs(2), stuck: Duration::from_secs(10) };
/// A request has come by then, however it trickles.
const DEADLINE: Duration = Duration::from_secs(5);
/// Bytes of the longest request, with its header.
const MAX_REQUEST: usize = 8 * 1024;
/// The exposition format (Prometheus, text).
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves the metrics of `router`.
///
/// # Errors
/// When there are no threads or descriptors left.
pub fn start(router: Arc<Router>, listener: Listener) -> io::Result<Service> {
    let serve = move |stream: &Stream, admitted| {
        let reply = if admitted { answer(&router, stream)? } else { Reply::error("503 Service Unavailable", "too many clients") };
        reply.send(stream)
    };
    Service::start("noref-metrics", listener, BOUNDS, serve)
}

/// Reads a request and says what is answered.
fn answer(router: &Router, stream: &Stream) -> io::Result<Reply> {
    let mut request = Vec::new();
    let begin = Instant::now();
    let head = loop {
        let mut bytes = [0; 1024];
        let len = (&mut &*stream).read(&mut bytes)?;
        request.extend(bytes.get(..len).unwrap_or_default());
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            break request.get(..end).unwrap_or_default();
        }
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if request.len() > MAX_REQUEST {
            return Ok(Reply::error("431 Request Header Fields Too Large", "a request has at most 8 KiB"));
        }
        if begin.elapsed() > DEADLINE {
            return Ok(Reply::error("408 Request Timeout", "the request did not come in time"));
        }
    };
    Ok(match parse(head) {
        Ok(Metrics { body }) => Reply { status: "200 OK", kind: EXPOSITION, allow: false, text: metrics::text(router), body },
        Err(reply) => reply,
    })
}

/// The metrics are asked for; with HEAD without their text.
#[derive(PartialEq, Eq, Debug)]
struct Metrics {
    body: bool,
}

/// Reads the first line of a request; the others say nothing that counts here.
fn parse(head: &[u8]) -> Result<Metrics, Reply> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let bad = || Reply::error("400 Bad Request", "a request begins with METHOD TARGET HTTP/1.1");
    let mut words = str::from_utf8(line).map_err(|_| bad())?.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(bad());
    };
    if !version.starts_with("HTTP/1.") {
        return Err(Reply::error("505 HTTP Version Not Supported", "HTTP/1.1 is spoken here"));
    }
    let body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Err(Reply { allow: true, ..Reply::error("405 Method Not Allowed", "GET and HEAD are what there is") }),
    };
    match target.split('?').next() {
        Some("/metrics") => Ok(Metrics { body }),
        _ => Err(Reply { body, ..Reply::error("404 Not Found", "metrics are at /metrics") }),
    }
}

#[derive(PartialEq, Eq, Debug)]
struct Reply {
    status: &'static str,
    kind: &'static str,
    /// Says which methods there are.
    allow: bool,
    text: String,
    /// The text itself is sent, not only its length.
    body: bool,
}

impl Reply {
    fn error(status: &'static str, why: &str) -> Reply {
        Reply { status, kind: PLAIN, allow: false, text: format!("{why}\n"), body: true }
    }

    fn send(&self, mut stream: &Stream) -> io::Result<()> {
        let Reply { status, kind, allow, text, body } = self;
        let allow = if *allow { "Allow: GET, HEAD\r\n" } else { "" };
        let len = text.len();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{allow}Content-Length: {len}\r\nConnection: close\r\n\r\n")?;
        if *body {
            stream.write_all(text.as_bytes())?;
        }
        stream.shutdown(Shutdown::Write)?;
        // A connection that is closed with bytes unread takes the reply with it. One that trickles is not waited for.
        let (begin, mut left) = (Instant::now(), MAX_REQUEST);
        while left > 0 && begin.elapsed() < DEADLINE {
            let mut bytes = [0; 1024];
            match stream.read(&mut bytes)? {
                0 => break,
                len => left = left.saturating_sub(len),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};

    use super::super::testing::router;
    use super::*;

    /// What a router answers to these bytes.
    fn ask(bytes: &[u8]) -> String {
        let listener = Listener::tcp(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let Listener::Tcp(tcp) = &listener else { unreachable!() };
        let address = tcp.local_addr().unwrap();
        let _service = start(router("ip link set e0 up\n", &["e0"]), listener).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    #[test]
    fn metrics_are_served_with_their_length() {
        let reply = ask(b"GET /metrics?x=y HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
        let (head, text) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\nConnection: close", text.len())), "{head}");
        assert!(text.contains("noref_port_received_packets_total{port=\"e0\"} 0\n"), "{text}");
        let head_only = ask(b"HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head_only.starts_with("HTTP/1.1 200 OK") && head_only.ends_with("\r\n\r\n"), "{head_only}");
    }

    #[test]
    fn everything_else_is_refused_with_the_reason() {
        for (bytes, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404 Not Found"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            (b"GET /metrics HTTP/2\r\n\r\n", "505 "),
            (b"GET /metrics\r\n\r\n", "400 Bad Request"),
            (b"\xff\xfe\xfd /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
            (b"\r\n\r\n", "400 Bad Request"),
            (&[b'x'; MAX_REQUEST + 1024], "431 "),
        ] {
            let reply = ask(bytes);
            assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{}: {reply}", String::from_utf8_lossy(bytes));
        }
        assert!(ask(b"PUT /metrics HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
    }
}
