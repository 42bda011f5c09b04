//! Prose in files: the text of Markdown, and the comments and literals of Rust code.

pub(super) fn numbered(text: &str) -> Vec<(usize, String)> {
    text.lines().enumerate().map(|(number, line)| (number + 1, line.to_owned())).collect()
}

/// The text of Markdown, without blocks of code and code within lines.
pub(super) fn markdown_prose(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            lines.push((number + 1, prose));
        }
    }
    lines
}

/// The comments and texts of Rust code: a line that is a comment, or the parts of a line between
/// quotes.
pub(super) fn rust_prose(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut in_text = false;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if !in_text && trimmed.starts_with("//") {
            lines.push((number + 1, trimmed.split('`').step_by(2).collect::<Vec<_>>().join("`")));
            continue;
        }
        let mut prose = String::new();
        let mut previous = ' ';
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if in_text => {
                    // An escape: its letter belongs to no word.
                    characters.next();
                    prose.push(' ');
                }
                '"' if !in_text && previous == '\'' => {}
                '"' => {
                    in_text = !in_text;
                    prose.push(' ');
                }
                '/' if !in_text && characters.peek() == Some(&'/') => {
                    prose.extend(characters.by_ref());
                }
                _ if in_text => prose.push(character),
                _ => {}
            }
            previous = character;
        }
        lines.push((number + 1, prose));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_documents_is_not_prose() {
        let lines = markdown_prose("a `says` b\n```\nsays\n```\nend");
        assert_eq!(lines, [(1, "a ` b".to_owned()), (5, "end".to_owned())]);
    }

    #[test]
    fn comments_and_texts_of_code_are_prose() {
        let lines = rust_prose(
            "let told = \"a \\\"quoted\\\" text\"; // why\n/// doc\nlet x = '\"';\nlet y = 1;\n",
        );
        let prose: Vec<&str> = lines.iter().map(|(_, line)| line.trim()).collect();
        assert_eq!(prose, ["a  quoted  text / why", "/// doc", "", ""]);
    }
}
