//! Lines of iproute2's language for a running router.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use control::show::{self, Listing};
use control::{Applied, Configuration, Errors};
use plane::{SidCount, Tables};
use route::{Editor, SidId};
use srv6::Sid;

use super::answer::Answer;
use super::counts;
use super::protocol::{Body, Lines, MAX_LINES, Outcome, Refusal, Request};
use crate::run::{Router, Snapshot};

/// What is said of lines that would change what a kernel says.
const MIRRORS: &str = "the kernel keeps the tables of this router: use ip";
/// Bytes of what is shown that one line of the reply carries.
const PIECE: usize = 32 * 1024;

/// Bytes that lines in parts may still take, of all clients together.
pub struct Budget(AtomicUsize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(AtomicUsize::new(MAX_LINES))
    }
}

impl Budget {
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Lines that come in several requests, put together.
pub struct Parts<'b> {
    lines: String,
    budget: &'b Budget,
    /// What was taken of the budget: kept until the next request, which comes when these lines were answered.
    taken: usize,
}

impl<'b> Parts<'b> {
    /// None yet.
    pub fn new(budget: &'b Budget) -> Parts<'b> {
        Parts { lines: String::new(), budget, taken: 0 }
    }

    /// The request with all its lines; none while more are to come.
    ///
    /// # Errors
    /// More lines than may be, or another request between their parts: all of them are forgotten then.
    pub fn whole(&mut self, request: Request) -> Result<Option<Request>, Refusal> {
        if self.lines.is_empty() {
            self.give_back();
        }
        let Request::Ip(part) = request else {
            if self.lines.is_empty() {
                return Ok(Some(request));
            }
            self.give_back();
            return Err(Refusal::new("another request came between the parts of lines, which are given up"));
        };
        // In one piece they are no more than a request may have.
        if !part.more && self.lines.is_empty() {
            return Ok(Some(Request::Ip(part)));
        }
        if !self.budget.take(part.lines.len()) {
            self.give_back();
            let most =
                format!("the lines of one request, with those that others send at the same time, are at most {MAX_LINES} bytes together");
            return Err(Refusal::new(most));
        }
        self.taken += part.lines.len();
        self.lines.push_str(&part.lines);
        if part.more {
            return Ok(None);
        }
        Ok(Some(Request::Ip(Lines { lines: std::mem::take(&mut self.lines), ..part })))
    }

    fn give_back(&mut self) {
        self.lines = String::new();
        self.budget.give(std::mem::take(&mut self.taken));
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Shows what the lines ask for, or changes what they say.
///
/// # Errors
/// Those of the other end.
pub fn ip(router: &Router, lines: &Lines, answer: &mut Answer<'_>) -> io::Result<()> {
    let name = if lines.name.is_empty() { "ip" } else { &lines.name };
    match show::listing(&lines.lines, name, &Running::new(router, false)) {
        Ok(Some(listing)) => shown(router, &listing, answer),
        Ok(None) => answer.last(Body::Ip(changed(router, lines, name))),
        Err(errors) => answer.last(Body::Ip(wrong(&errors))),
    }
}

fn shown(router: &Router, listing: &Listing, answer: &mut Answer<'_>) -> io::Result<()> {
    let mut pieces = Pieces { answer, text: Vec::with_capacity(PIECE) };
    listing.print(&Running::new(router, listing.counts()), &mut pieces)?;
    let text = String::from_utf8_lossy(&pieces.text).into_owned();
    let refusal = listing.refusal();
    let errors = refusal.unwrap_or_default().to_owned();
    let no_answer = refusal.is_some();
    answer.last(Body::Ip(Outcome { text, errors, refused: no_answer, no_answer, ..Outcome::default() }))
}

/// Changes what a router that is alone on its interfaces has.
fn changed(router: &Router, lines: &Lines, name: &str) -> Outcome {
    let done = router.configuration(|configuration| {
        let (applied, errors) = match lines.force {
            true => configuration.apply_each(&lines.lines, name),
            false => match configuration.apply(&lines.lines, name) {
                Ok(applied) => (applied, None),
                Err(errors) => (Applied::default(), Some(errors)),
            },
        };
        let again = begin_to_count(configuration, &applied.numbered_again);
        (applied, errors, again)
    });
    let Some((applied, errors, again)) = done else {
        return Outcome { errors: MIRRORS.to_owned(), refused: true, ..Outcome::default() };
    };
    count_afresh(router, &again);
    let warnings = applied.warnings.iter().map(ToString::to_string).collect();
    Outcome { warnings, ..errors.as_ref().map(wrong).unwrap_or_default() }
}

/// New SIDs whose numbers others had before, to be told from those that come later.
type Again = Vec<(SidId, Arc<Sid>)>;

/// A new SID shows zeros, also under a number that another had before.
fn begin_to_count(configuration: &mut Configuration, numbered_again: &[SidId]) -> Again {
    numbered_again.iter().for_each(|id| configuration.sids.count_from(*id, counts::NOT_KNOWN));
    numbered_again.iter().filter_map(|id| Some((*id, Arc::clone(&configuration.sids.get(*id)?.sid)))).collect()
}

/// Has them count from now on. Workers are asked, which may take seconds: nobody who wants the configuration waits for that.
fn count_afresh(router: &Router, again: &Again) {
    if again.is_empty() {
        return;
    }
    let snapshots = router.snapshots();
    router.configuration(|configuration| {
        for (id, sid) in again {
            // Not one that came under the number meanwhile: it counts from later on.
            if configuration.sids.get(*id).is_some_and(|known| Arc::ptr_eq(&known.sid, sid)) {
                configuration.sids.count_from(*id, counts::sid_count(&snapshots, &BTreeMap::new(), *id));
            }
        }
    });
}

fn wrong(errors: &Errors) -> Outcome {
    Outcome { errors: errors.to_string(), refused: errors.parsed, ..Outcome::default() }
}

/// The router as what is shown is read from it.
struct Running<'r> {
    router: &'r Router,
    snapshots: Vec<Snapshot>,
    before: BTreeMap<SidId, SidCount>,
}

impl<'r> Running<'r> {
    /// `counts`: what was counted is asked for. That is done before the tables' lock is taken.
    fn new(router: &'r Router, counts: bool) -> Running<'r> {
        match counts {
            true => Running { router, snapshots: router.snapshots(), before: router.counted_before() },
            false => Running { router, snapshots: Vec::new(), before: BTreeMap::new() },
        }
    }
}

impl show::Source for Running<'_> {
    fn editor<R>(&self, read: impl FnOnce(&Editor) -> R) -> R {
        self.router.editor(read)
    }

    fn tables(&self) -> &Tables {
        self.router.tables()
    }

    fn counted(&self, id: SidId) -> SidCount {
        counts::sid_count(&self.snapshots, &self.before, id)
    }
}

/// What is shown, in lines of a reply.
struct Pieces<'a, 'w> {
    answer: &'a mut Answer<'w>,
    text: Vec<u8>,
}

impl Write for Pieces<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.text.is_empty() && self.text.len() + bytes.len() > PIECE {
            self.flush()?;
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Entries are written whole, so that no character is cut.
        let text = String::from_utf8_lossy(&self.text).into_owned();
        self.text.clear();
        self.answer.more(Body::Ip(Outcome { text, ..Outcome::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Served, router};
    use super::*;

    const NETWORK: &str = "ip link set e0 up\nip addr add 10.0.0.1/24 dev e0\n";

    #[test]
    fn lines_are_done_and_shown_over_the_socket() {
        let router = router(NETWORK, &["e0"]);
        let served = Served::new(&router);
        let mut peer = served.connect();
        assert_eq!(peer.ask("{\"v\":1,\"ip\":{\"lines\":\"route add 10.9/16 via 10.0.0.2\"}}"), "{\"v\":1,\"ip\":{}}\n");
        let shown = "{\"v\":1,\"ip\":{\"text\":\"10.9.0.0/16 via 10.0.0.2 dev e0 \\n\"}}\n";
        assert_eq!(peer.ask("{\"v\":1,\"ip\":{\"lines\":\"route show 10.9/16\"}}").replace("\"text\":\"\",", ""), shown);
        let refused = peer.ask("{\"v\":1,\"ip\":{\"lines\":\"route add 10.9/16 via 10.0.0.2\",\"name\":\"a.ip\"}}");
        assert!(refused.starts_with("{\"v\":1,\"ip\":{\"errors\":\"a.ip:1:11: the route to 10.9.0.0/16 exists already"), "{refused}");
        assert!(refused.ends_with("\"refused\":true}}\n"), "{refused}");
        let wrong = peer.ask("{\"v\":1,\"ip\":{\"lines\":\"route ad3\"}}");
        assert!(wrong.contains("unknown command \\\"ad3\\\"") && !wrong.contains("refused"), "{wrong}");
        let warned = peer.ask("{\"v\":1,\"ip\":{\"lines\":\"-6 route add fc00::1 encap seg6local action End nh4 10.0.0.2 dev e0\"}}");
        assert!(warned.contains("\"warnings\":[\"ip:1:") && !warned.contains("errors"), "{warned}");
        assert!(peer.ask("{\"v\":1,\"ip\":{\"lines\":\"\",\"force\":1}}").contains("\"error\""));
    }

    #[test]
    fn lines_of_several_requests_are_done_together_or_not_at_all() {
        let router = router(NETWORK, &["e0"]);
        let served = Served::new(&router);
        let mut peer = served.connect();
        peer.send(b"{\"v\":1,\"ip\":{\"lines\":\"route add 10.8/16 via 10.0.0.2\\nroute a\",\"more\":true}}\n");
        let wrong = peer.ask("{\"v\":1,\"ip\":{\"lines\":\"dd 10.9/16 via 10.1.0.2\"}}");
        assert!(wrong.contains("ip:2:23: the gateway 10.1.0.2"), "{wrong}");
        assert_eq!(router.editor(|editor| editor.routes::<std::net::Ipv4Addr>(route::TableId::MAIN).count()), 1);
        peer.send(b"{\"v\":1,\"ip\":{\"lines\":\"route add 10.8/16 via 10.0.0.2\",\"more\":true}}\n");
        let other = peer.ask("{\"v\":1,\"show\":{\"what\":\"drops\"}}");
        assert!(other.contains("another request came between"), "{other}");
        assert_eq!(peer.ask("{\"v\":1,\"ip\":{\"lines\":\"route add 10.9/16 via 10.0.0.2\"}}"), "{\"v\":1,\"ip\":{}}\n");
        assert_eq!(router.editor(|editor| editor.routes::<std::net::Ipv4Addr>(route::TableId::MAIN).count()), 2);
    }

    #[test]
    fn lines_without_end_are_refused_and_clients_share_what_may_be() {
        let budget = Budget::default();
        let (mut parts, mut others) = (Parts::new(&budget), Parts::new(&budget));
        let part = |len, more| Request::Ip(Lines { lines: "x".repeat(len), more, ..Lines::default() });
        assert_eq!(parts.whole(part(MAX_LINES, true)), Ok(None));
        assert!(others.whole(part(1, true)).unwrap_err().message.contains("at most 268435456 bytes"), "they share it");
        assert_eq!(others.whole(part(1, false)), Ok(Some(part(1, false))), "few lines need none of it");
        assert!(parts.whole(part(1, true)).unwrap_err().message.contains("at most 268435456 bytes"));
        assert_eq!(parts.whole(part(1, true)), Ok(None));
        // What is answered is given back at the next request, and what a client leaves when it goes.
        assert!(matches!(parts.whole(part(1, false)), Ok(Some(_))));
        assert!(matches!(parts.whole(part(1, false)), Ok(Some(_))));
        assert_eq!(others.whole(part(7, true)), Ok(None));
        drop(others);
        assert_eq!(parts.whole(part(MAX_LINES, true)), Ok(None));
    }
}
