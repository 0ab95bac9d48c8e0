//! Keywords and their abbreviations.
//!
//! `ip` goes through its keywords in a fixed order and takes the first that fits. Some must be written in full, others may be cut short
//! anywhere: `r` is `route` because `route` stands before `rule`, and in `ip route add` it is `reordering`. The tables of this crate keep
//! iproute2's order, so that an abbreviation means here what it means there.

/// One keyword.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyword<K> {
    pub(crate) word: &'static str,
    pub(crate) abbreviable: bool,
    pub(crate) key: K,
}

/// A keyword that has to be written in full.
pub(crate) const fn full<K>(word: &'static str, key: K) -> Keyword<K> {
    Keyword { word, abbreviable: false, key }
}

/// A keyword of which any beginning will do.
pub(crate) const fn short<K>(word: &'static str, key: K) -> Keyword<K> {
    Keyword { word, abbreviable: true, key }
}

/// The first keyword of `table` that `word` stands for.
pub(crate) fn find<'k, K>(table: &'k [Keyword<K>], word: &str) -> Option<&'k Keyword<K>> {
    let first = *word.as_bytes().first()?;
    // No keyword begins with a digit; most words that are no keyword do.
    if first.is_ascii_digit() {
        return None;
    }
    // Most keywords are told apart by their first letter, without a call to compare.
    let fits = |keyword: &Keyword<K>| if keyword.abbreviable { keyword.word.starts_with(word) } else { keyword.word == word };
    table.iter().find(|keyword| keyword.word.as_bytes().first() == Some(&first) && fits(keyword))
}

/// The words of a table, for an error that lists them.
pub(crate) fn words<K>(table: &[Keyword<K>]) -> Vec<String> {
    words_of(table, |_| true)
}

/// The words of a table whose key is one that is `wanted`, for an error that lists them.
pub(crate) fn words_of<K>(table: &[Keyword<K>], wanted: impl Fn(&K) -> bool) -> Vec<String> {
    table.iter().filter(|keyword| wanted(&keyword.key)).map(|keyword| keyword.word.to_owned()).collect()
}

/// The first word of a table whose key is the one `wanted`: how it is shown.
pub(crate) fn word_of<K>(table: &[Keyword<K>], wanted: impl Fn(&K) -> bool) -> Option<&'static str> {
    table.iter().find(|keyword| wanted(&keyword.key)).map(|keyword| keyword.word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Keyword<u8>] = &[short("route", 1), short("rule", 2), full("via", 3)];

    #[test]
    fn the_first_keyword_that_fits_wins() {
        let key = |word| find(TABLE, word).map(|keyword| keyword.key);
        assert_eq!(key("r"), Some(1));
        assert_eq!(key("ru"), Some(2));
        assert_eq!(key("route"), Some(1));
        assert_eq!(key("routes"), None);
    }

    #[test]
    fn a_full_keyword_is_not_cut_short_and_an_empty_word_is_none() {
        assert!(find(TABLE, "vi").is_none());
        assert!(find(TABLE, "via").is_some());
        assert!(find(TABLE, "").is_none());
    }
}
