//! Numbers of bytes in options.

/// Bytes: a number, with K, M, G or T for powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let units = [("K", 1_u64 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];
    let upper = text.trim().to_ascii_uppercase();
    let unit = units.iter().find_map(|(unit, factor)| Some((upper.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((&upper, 1));
    let size = number.parse::<f64>().ok().map(|number| number * factor as f64);
    match size {
        Some(size) if (0.0..1e18).contains(&size) => Ok(size as u64),
        _ => Err("expected bytes such as `1000`, `10K`, `1.5M` or `2G`".to_owned()),
    }
}
