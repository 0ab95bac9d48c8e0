//! The word that was probably meant.

/// The candidate nearest to a misspelt word, if one is near enough: a letter wrong, missing, too many or swapped,
/// two of that in words of six letters or more, none in words of one or two.
///
/// Upper and lower case count as equal. Among equally near ones that with the nearest letter wins: "End.DX7" is rather End.DX6 than End.DX2.
pub(crate) fn nearest<'c>(word: &str, candidates: &'c [String]) -> Option<&'c str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let written = word.to_ascii_lowercase();
    candidates
        .iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(written.as_bytes(), candidate.to_ascii_lowercase().as_bytes()), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&((edits, _), candidate)| edits <= 2 && edits * 3 <= candidate.len())
        .map(|(_, candidate)| candidate.as_str())
}

/// How many letters have to be changed, put in, taken out or swapped; and for words of one length how far their letters are apart.
fn distance(a: &[u8], b: &[u8]) -> (usize, u32) {
    // Three rows of the usual table: swaps look two rows back.
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut last_letter = None;
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        let mut previous = None;
        for (j, &y) in b.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            if j > 0 && last_letter == Some(y) && previous == Some(x) {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
            previous = Some(y);
        }
        before = last;
        last = row;
        last_letter = Some(x);
    }
    let apart = if a.len() == b.len() { a.iter().zip(b).map(|(x, y)| u32::from(x.abs_diff(*y))).sum() } else { u32::MAX };
    (last.last().copied().unwrap_or_default(), apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(word: &str, of: &[&str]) -> Option<String> {
        let of: Vec<String> = of.iter().map(|&word| word.to_owned()).collect();
        nearest(word, &of).map(str::to_owned)
    }

    #[test]
    fn a_slip_finds_the_word_that_was_meant() {
        assert_eq!(meant("End.DX7", &["End", "End.DX2", "End.DX4", "End.DX6"]).as_deref(), Some("End.DX6"));
        assert_eq!(meant("end.dt46", &["End.DT4", "End.DT46"]).as_deref(), Some("End.DT46"));
        assert_eq!(meant("vai", &["dev", "via"]).as_deref(), Some("via"));
        assert_eq!(meant("metrik", &["metric", "mtu"]).as_deref(), Some("metric"));
    }

    #[test]
    fn a_far_word_finds_none() {
        assert_eq!(meant("qqq", &["dev", "via"]), None);
        assert_eq!(meant("x", &["e", "f"]), None);
        assert_eq!(meant("", &["e"]), None);
        assert_eq!(meant("e9", &["e1"]), None);
    }
}
