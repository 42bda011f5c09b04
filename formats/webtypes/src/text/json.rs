//! The memory of a JSON document whose values are all in memory.

/// Bytes of an object with its first members, of each further member or item, and of a text in
/// addition to its characters.
const OBJECT: u64 = 640;
const ITEM: u64 = 100;
const TEXT: u64 = 32;

/// About how many bytes the values of a JSON document take in memory: up to 300 times its own. The text is
/// not checked.
///
/// ```
/// use abreast_webtypes::memory_of_json;
///
/// assert!(memory_of_json(b"[\"{{{{\"]") < 200);
/// assert!(memory_of_json(br#"[{},{}]"#) > 1_200);
/// ```
pub fn memory_of_json(text: &[u8]) -> u64 {
    let (mut memory, mut in_text, mut is_escaped) = (0, false, false);
    for byte in text {
        if in_text {
            memory += 1;
            in_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        memory += match byte {
            b'{' => OBJECT,
            b'[' | b',' => ITEM,
            b'"' => {
                in_text = true;
                TEXT
            }
            _ => 0,
        };
    }
    memory
}
