fn main() {
    let file = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let start = std::time::Instant::now();
    match control::network_file(&text, &file, &["e0", "e1", "e2", "e3"]) {
        Ok(done) => println!(
            "ok {:?} {} sids {:?}",
            start.elapsed(),
            done.sids.len(),
            done.warnings.iter().map(|w| w.to_string()).collect::<Vec<_>>()
        ),
        Err(errors) => println!("{errors}"),
    }
}
