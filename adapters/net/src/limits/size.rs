//! Numbers of bytes as users write them.

/// Bytes, with or without a unit, such as `1000`, `10K`, `1.5 MiB` or `500MB`: K, KiB and so on are powers of 1024, kB
/// and so on powers of 1000. Upper and lower case are equal.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|byte: char| !byte.is_ascii_digit() && byte != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let size = number.parse::<f64>().ok()? * factor as f64;
    (size < 1e18).then_some(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [
            ("1048576", 1 << 20),
            ("10K", 10 << 10),
            ("10k", 10 << 10),
            ("1.5M", 3 << 19),
            ("1GiB", 1 << 30),
            ("1 gib", 1 << 30),
            ("2T", 2 << 40),
            ("500 MB", 500_000_000),
            ("1kB", 1_000),
            ("0", 0),
        ];
        for (text, size) in sizes {
            assert_eq!(parse_size(text), Some(size), "{text}");
        }
        for bad in ["", "GiB", "-1", "1e3", "1.2.3K", "1 X", "99999999999TiB", "1K B", "inf", "."] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
