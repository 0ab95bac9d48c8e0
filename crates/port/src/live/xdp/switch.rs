//! Lets every device's frames to the kernel at once when the process ends, however it ends.
//!
//! ```text
//! frame → entry program ──tail call──► table of programs [slot] ──► the filter
//!              └── empty slot: to the kernel
//! ```
//! A process that is killed gives its devices and sockets back one by one, and the kernel waits for a grace period at each: with four ports a tenth of a
//! second, during which frames still go to sockets that nobody reads. But it empties a table of programs as soon as the last descriptor of it is closed. All
//! filters of the process go through one table, so that all stop in one moment. Descriptors of a process that ends are closed last one first; so the
//! table's is made anew after each socket.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::bpf::{BpfError, Map, MapKind, Program};
use super::context::{PASS, number};
use super::{Alu, Asm, AsmError, Helper, Insn, Reg};

/// Filters that a process can have.
const SLOTS: u32 = 1024;

/// The table of this process, while there are filters.
static TABLE: Mutex<Weak<Mutex<Table>>> = Mutex::new(Weak::new());

#[derive(Debug)]
struct Table {
    programs: Map,
    taken: Vec<bool>,
}

/// A slot of the table, and the program that leads there. Dropped, it is empty again.
#[derive(Debug)]
pub(super) struct Switch {
    entry: Program,
    slot: u32,
    table: Arc<Mutex<Table>>,
}

impl Switch {
    /// A switch that is on: frames go through `filter`.
    ///
    /// # Errors
    /// When the kernel refuses, or the process has 1024 filters.
    pub(super) fn new(filter: &Program) -> Result<Switch, BpfError> {
        let table = table()?;
        let (entry, slot) = {
            let mut table = lock(&table);
            let slot = (0..SLOTS).zip(&table.taken).find(|(_, taken)| !**taken).map(|(slot, _)| slot);
            let slot = slot.ok_or_else(full)?;
            let code = assemble(&table.programs, slot).map_err(BpfError::assembling("the switch"))?;
            let entry = Program::load("noref_switch", &code)?;
            table.taken[slot as usize] = true;
            (entry, slot)
        };
        let switch = Switch { entry, slot, table };
        switch.on(filter)?;
        Ok(switch)
    }

    /// Frames go through `filter`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn on(&self, filter: &Program) -> Result<(), BpfError> {
        lock(&self.table).programs.insert(&self.slot.to_ne_bytes(), &filter.as_fd().as_raw_fd().to_ne_bytes())
    }

    /// Frames go to the kernel.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn off(&self) -> Result<(), BpfError> {
        lock(&self.table).programs.remove(&self.slot.to_ne_bytes()).map(|_| ())
    }

    /// The program to be attached.
    pub(super) fn entry(&self) -> &Program {
        &self.entry
    }

    /// Has the table's descriptor be closed before all that were opened until now. Without the right to (CAP_SYS_ADMIN) it stays where it is, and the
    /// process ends a little slower.
    pub(super) fn close_first(&self) {
        let _ = lock(&self.table).programs.reopen();
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It fails when it is empty already.
        let _ = self.off();
        let mut table = lock(&self.table);
        if let Some(taken) = table.taken.get_mut(self.slot as usize) {
            *taken = false;
        }
    }
}

fn table() -> Result<Arc<Mutex<Table>>, BpfError> {
    let mut known = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(table) = known.upgrade() {
        return Ok(table);
    }
    let programs = Map::new(MapKind::Programs, "noref_switches", 4, 4, SLOTS)?;
    let table = Arc::new(Mutex::new(Table { programs, taken: vec![false; SLOTS as usize] }));
    *known = Arc::downgrade(&table);
    Ok(table)
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn assemble(programs: &Map, slot: u32) -> Result<Vec<Insn>, AsmError> {
    let mut asm = Asm::default();
    // The context stays in R1.
    asm.map(Reg::R2, number(programs));
    asm.alu64(Alu::Move, Reg::R3, slot as i32);
    asm.call(Helper::TailCall);
    asm.alu64(Alu::Move, Reg::R0, PASS);
    asm.exit();
    asm.finish()
}

fn full() -> BpfError {
    BpfError::Call { what: "a slot for the filter".to_owned(), source: std::io::Error::other(format!("all {SLOTS} are taken")) }
}

#[cfg(test)]
mod tests {
    use super::super::bpf::allowed;
    use super::*;

    /// A program that answers so.
    fn answering(answer: i32) -> Option<Program> {
        let mut asm = Asm::default();
        asm.alu64(Alu::Move, Reg::R0, answer);
        asm.exit();
        allowed(Program::load("noref_test", &asm.finish().unwrap()))
    }

    #[test]
    fn a_switch_leads_to_its_filter_until_the_table_is_gone() {
        let (Some(one), Some(two)) = (answering(1), answering(0)) else { return };
        let (first, second) = (Switch::new(&one).unwrap(), Switch::new(&two).unwrap());
        let answer = |switch: &Switch| switch.entry().answer(&[0; 64]).unwrap();
        assert_eq!((answer(&first), answer(&second)), (1, 0));
        first.off().unwrap();
        assert_eq!((answer(&first), answer(&second)), (PASS as u32, 0));
        first.on(&one).unwrap();
        first.close_first();
        assert_eq!((answer(&first), answer(&second)), (1, 0), "another descriptor, the same table");
        let slot = first.slot;
        drop(first);
        assert_ne!(slot, second.slot);
        assert_eq!(answer(&second), 0, "the other stays");
    }
}
