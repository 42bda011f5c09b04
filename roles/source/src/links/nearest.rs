//! The known name that is most like another.

/// The nearest of the known names.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> &'a str {
    let name = name.to_ascii_lowercase();
    let alike = known.iter().map(|known| (strsim::jaro(known, &name), *known));
    alike.max_by(|(one, _), (two, _)| one.total_cmp(two)).map_or("", |(_, nearest)| nearest)
}
