//! Enough of XML to tell that a drawing is well-formed.

/// The elements' names with their attributes, in order.
///
/// # Errors
/// What is not well-formed.
pub fn elements(text: &str) -> Result<Vec<String>, String> {
    let (mut elements, mut open) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some((words, mark)) = rest.split_once('<') {
        check(words)?;
        let (tag, behind) = mark.split_once('>').ok_or_else(|| format!("<{mark:.20} does not end"))?;
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(begun) if begun == name => continue,
                begun => return Err(format!("</{name}> ends {begun:?}")),
            }
        }
        let name = tag.split_whitespace().next().unwrap_or_default().trim_end_matches('/');
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("<{tag}>: a value does not end"));
        }
        tag.split('"').skip(1).step_by(2).try_for_each(check)?;
        elements.push(tag.to_owned());
        if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    check(rest)?;
    if open.is_empty() { Ok(elements) } else { Err(format!("{open:?} do not end")) }
}

/// Words have no marks, and entities only that XML knows.
fn check(words: &str) -> Result<(), String> {
    let known = |rest: &str| ["amp;", "lt;", "gt;", "quot;"].iter().any(|entity| rest.starts_with(entity));
    match words.split('&').skip(1).find(|rest| !known(rest)) {
        Some(rest) => Err(format!("&{rest:.10} is no entity")),
        None if words.contains('>') => Err(format!("a > in {words:?}")),
        None => Ok(()),
    }
}

#[test]
fn what_is_not_well_formed_is_seen() {
    assert_eq!(elements("<a><b c=\"d\"/>x &amp; y</a>").unwrap(), ["a", "b c=\"d\"/"]);
    for bad in ["<a>", "<a></b>", "<a>&</a>", "<a b=\"></a>", "<a", "<a><b></a></b>"] {
        assert!(elements(bad).is_err(), "{bad}");
    }
}
