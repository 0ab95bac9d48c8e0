//! `noref demo`: an SRv6 L3VPN between network namespaces, routed by the kernel alone and then by noref beside it.
//!
//! ```text
//! Lab ──► checks, the kernel alone ──► noref at edge west and core, the same checks ──► noref killed, the kernel again ──► all taken down
//! ```
//! Where no namespaces can be made, the example in `examples/l3vpn` is replayed instead.

mod checks;
mod count;
mod down;
mod echo;
mod example;
mod lab;
mod transfer;

use std::io::Write as _;
use std::time::{Duration, Instant};

use clap::Args;

use self::checks::{Check, Verdict};
use self::lab::{Lab, ROUTERS, RouterPlan};
use crate::failure::Failure;
use crate::lab::{Interrupt, Router, namespace};
use crate::show::columns::{Align, Columns};
use crate::stdout::Stdout;

/// Show noref at work in a lab of network namespaces
///
/// Makes an SRv6 L3VPN: two sites of two tenants, two edges and a core router. First the kernel alone routes in it, then noref beside the kernel at one edge and at
/// the core, in mirror mode; echo requests and TCP cross it each time. Then everything is taken down, also on Ctrl-C. It takes root and iproute2; without root an
/// example is replayed instead, which takes no privileges.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Leave the lab as it is at the end, noref running, and say how to look at it
    #[arg(long, conflicts_with = "down")]
    pub keep: bool,

    /// Take down labs that were kept
    #[arg(long)]
    pub down: bool,
}

const EXAMPLES: &str = "\
Examples:
  noref demo
  noref demo --keep
  noref demo --down

Exit status:
  0  every check passed, or the example was replayed
  1  a check failed, or it was interrupted
  2  the lab could not be made";

/// How long the kernel may take to forward on its own again.
const TAKES_OVER: Duration = Duration::from_secs(1);
/// A lab that is not kept is gone long before; should this process be killed, its routers end by themselves.
const LONGEST: Duration = Duration::from_secs(120);
/// Routers that noref is in beside the kernel; at the far end the kernel stays alone.
const BESIDE: [usize; 2] = [0, 1];

/// Runs the demo.
///
/// # Errors
/// When a check fails, the lab cannot be made, or somebody interrupts.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    if args.down {
        return down::run();
    }
    if let Err(why) = namespace::possible() {
        return example::run(&why, args.keep);
    }
    let interrupt = Interrupt::new()?;
    let mut stdout = Stdout::new();
    stdout.line("An SRv6 L3VPN. Both tenants have the same addresses; 192.168.3.10 is blue's alone.\n")?;
    stdout.line(include_str!("drawing.txt"))?;
    stdout.flush()?;

    let begin = Instant::now();
    let lab = Lab::new().map_err(Failure::unusable)?;
    let mut demo = Demo { lab, interrupt, stdout, passed: 0, failed: 0 };
    demo.stdout.line(format_args!("made of {} network namespaces in {} ms\n", demo.lab.size(), begin.elapsed().as_millis()))?;
    let kernel_alone = demo.pass("The kernel alone routes:")?;
    let mut routers = demo.start_routers(Some(LONGEST))?;
    let before = demo.kernels()?;
    demo.checks("noref routes beside the kernel, in mirror mode, at edge west and core:")?;
    let noref = demo.norefs(&routers)?;
    let beside = count::gained(&before, &demo.kernels()?);
    demo.compare(&noref, &beside)?;
    demo.kill(&mut routers)?;
    demo.table(&kernel_alone, &noref, &beside)?;
    if args.keep && demo.failed == 0 {
        drop(routers);
        let routers = demo.start_routers(None)?;
        return demo.keep(routers);
    }
    demo.end()
}

/// A demo that runs. Its lab goes with it.
struct Demo {
    lab: Lab,
    interrupt: Interrupt,
    stdout: Stdout,
    passed: u32,
    failed: u32,
}

impl Demo {
    /// All checks, and what the kernels forwarded meanwhile.
    fn pass(&mut self, heading: &str) -> Result<Vec<u64>, Failure> {
        let before = self.kernels()?;
        self.checks(heading)?;
        Ok(count::gained(&before, &self.kernels()?))
    }

    fn checks(&mut self, heading: &str) -> Result<(), Failure> {
        self.stdout.line(heading)?;
        for check in checks::ALL {
            let verdict = check.run(&self.lab);
            self.tell(check, &verdict)?;
        }
        self.stdout.line("")
    }

    fn tell(&mut self, check: &Check, verdict: &Verdict) -> Result<(), Failure> {
        self.say(&format!("{:<11}{:<14}{}", check.from(), check.to, check.what()), verdict)
    }

    /// Prints what became of a check. Whoever interrupts is heard between two.
    fn say(&mut self, what: &str, verdict: &Verdict) -> Result<(), Failure> {
        match verdict {
            Ok(found) => {
                self.passed += 1;
                self.stdout.line(format!("  ok      {what}{found}").trim_end())?;
            }
            Err(found) => {
                self.failed += 1;
                self.stdout.line(format_args!("  failed  {what}: {found}"))?;
            }
        }
        self.stdout.flush()?;
        self.interrupt.look()
    }

    /// Starts noref where it is to be.
    fn start_routers(&mut self, longest: Option<Duration>) -> Result<Vec<Router>, Failure> {
        let start = |place: usize| {
            let RouterPlan { name, place, ports, .. } = ROUTERS[place];
            let arguments = [&["--mirror", "--workers", "1", "--port"], ports].concat();
            Router::start(name, self.lab.at(place)?, &self.lab.directory().join(place), &arguments, longest)
        };
        BESIDE.into_iter().map(start).collect::<Result<_, _>>().map_err(Failure::incomplete)
    }

    /// What each kernel has forwarded so far.
    fn kernels(&self) -> Result<Vec<u64>, Failure> {
        self.lab.routers().map(count::kernel).collect::<Result<_, _>>().map_err(Failure::incomplete)
    }

    /// What each noref has forwarded so far.
    fn norefs(&self, routers: &[Router]) -> Result<Vec<u64>, Failure> {
        routers.iter().map(Router::forwarded).collect()
    }

    /// Where noref is, it forwards and the kernel does not.
    fn compare(&mut self, noref: &[u64], kernel: &[u64]) -> Result<(), Failure> {
        for (place, noref) in BESIDE.into_iter().zip(noref) {
            let kernel = kernel.get(place).copied().unwrap_or_default();
            let found = format!("noref forwarded {noref} packets, the kernel {kernel}");
            // What waits for the kernel to find a neighbour, or is told of a better way, is its own.
            let verdict = match *noref >= checks::FEWEST_PACKETS && kernel * 100 <= *noref {
                true => Ok(String::new()),
                false => Err(format!("expected at least {}, and the kernel 1 in 100 at most", checks::FEWEST_PACKETS)),
            };
            self.say(&format!("{:<11}{found}", ROUTERS[place].name), &verdict)?;
        }
        self.stdout.line("")
    }

    /// Kills noref; the kernel forwards on.
    fn kill(&mut self, routers: &mut Vec<Router>) -> Result<(), Failure> {
        self.stdout.line("noref is killed (SIGKILL) at both, and the kernel goes on:")?;
        let killed = Instant::now();
        routers.iter_mut().for_each(Router::kill);
        for check in checks::AFTERWARDS {
            let verdict = check.answers_within(&self.lab, killed, TAKES_OVER);
            self.tell(check, &verdict)?;
        }
        routers.clear();
        self.stdout.line("")
    }

    /// Who forwarded how much.
    fn table(&mut self, alone: &[u64], noref: &[u64], beside: &[u64]) -> Result<(), Failure> {
        let heading = [
            ("packets forwarded by", Align::Left),
            ("the kernel alone", Align::Right),
            ("noref", Align::Right),
            ("the kernel beside it", Align::Right),
        ];
        let rows: Vec<Vec<String>> = ROUTERS
            .iter()
            .enumerate()
            .map(|(place, router)| {
                let noref = BESIDE.iter().position(|beside| *beside == place).and_then(|at| noref.get(at));
                let number = |of: &[u64]| of.get(place).map(u64::to_string).unwrap_or_default();
                vec![router.name.to_owned(), number(alone), noref.map_or_else(|| "-".to_owned(), u64::to_string), number(beside)]
            })
            .collect();
        self.stdout.print(|output| {
            Columns::new(&heading).print(&rows, output)?;
            writeln!(output, "\nBetween namespaces AF_XDP copies every frame twice: here noref is not for speed (docs/operate.md).\n")
        })
    }

    /// Leaves everything as it is.
    fn keep(mut self, routers: Vec<Router>) -> Result<(), Failure> {
        let socket = routers.first().map(|router| router.socket().display().to_string()).unwrap_or_default();
        let prefix = self.lab.prefix();
        self.stdout.line(format_args!(
            "all {} checks passed. The lab stays, with noref running at edge west and core:\n\n  \
             ip netns exec {prefix}-red-west ping 192.168.2.10\n  \
             ip -n {prefix}-west -6 route\n  \
             noref show sids --socket {socket}\n  \
             noref trace --socket {socket}\n\n\
             noref demo --down takes it down.",
            self.passed
        ))?;
        self.stdout.flush()?;
        routers.into_iter().for_each(Router::leave);
        self.lab.leave();
        Ok(())
    }

    /// Takes everything down and says how it was.
    fn end(self) -> Result<(), Failure> {
        let Demo { lab, mut stdout, passed, failed, .. } = self;
        drop(lab);
        if failed == 0 {
            stdout.line(format_args!("all {passed} checks passed; the lab is taken down"))?;
            return stdout.flush();
        }
        stdout.flush()?;
        Err(Failure::incomplete(format!("{failed} of {} checks failed; the lab is taken down", passed + failed)))
    }
}
