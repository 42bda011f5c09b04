//! Numbers of bytes in options and settings.

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

/// A number of bytes, with or without a unit.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("1GiB"), Some(1 << 30));
        assert_eq!(bytes("500 MB"), Some(500_000_000));
        assert_eq!(bytes("1048576"), Some(1 << 20));
        for bad in ["", "GiB", "1 gib", "-1", "1.5GiB", "99999999999TiB"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}
