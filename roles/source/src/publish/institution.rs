//! The institution that publishes, as the pages for people show it.

use thiserror::Error;

/// The institution that publishes the sets of a Source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Institution {
    /// Name of the institution; empty if it is not configured.
    pub name: String,
    /// URL of the institution's own site.
    pub url: Option<String>,
    /// URL of an image, which the header of each page shows.
    pub logo: Option<String>,
    /// Contact: a mail address or the URL of a page.
    pub contact: Option<String>,
    /// Colour of links and buttons.
    pub accent: Accent,
}

/// A colour with enough contrast for text: one for light pages, one for dark pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accent {
    light: [u8; 3],
    dark: [u8; 3],
}

/// The reason why a colour cannot be the accent of pages.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccentError {
    /// The text is not a colour.
    #[error("`{0}` is not a colour such as `#1f4e79`")]
    Form(String),
    /// Text in this colour would be hard to read on white [wcag22 §1.4.3].
    #[error("`{colour}` has a contrast of {tenths}.{hundredths} to white, and text needs 4.5", tenths = .hundredths / 100, hundredths = .hundredths % 100)]
    Contrast {
        /// The refused colour, as it was written.
        colour: String,
        /// Contrast ratio to white in hundredths.
        hundredths: u32,
    },
}

/// Least contrast ratio of text to its background [wcag22 §1.4.3].
const CONTRAST: f64 = 4.5;
/// Background of dark pages, as in `style.css`.
const DARK_BACKGROUND: [u8; 3] = [0x16, 0x18, 0x1c];
const WHITE: [u8; 3] = [255; 3];

impl Default for Accent {
    fn default() -> Self {
        Self::of([0x1f, 0x4e, 0x79])
    }
}

impl Accent {
    /// Parses a colour of the form `#1f4e79`. Dark pages use a lighter variant.
    ///
    /// # Errors
    /// The text is not a colour, or its contrast to white is less than 4.5.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::publish::Accent;
    ///
    /// assert_eq!(Accent::parse("#7a1f2b")?.light(), "#7a1f2b");
    /// assert!(Accent::parse("#ffcc00").is_err());
    /// # Ok::<(), abreast_source::publish::AccentError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, AccentError> {
        let form = || AccentError::Form(text.to_owned());
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6).ok_or_else(form)?;
        let number = digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
            .ok_or_else(form)?;
        let [_, red, green, blue] = number.to_be_bytes();
        let contrast = contrast([red, green, blue], WHITE);
        if contrast < CONTRAST {
            let hundredths = (contrast * 100.0) as u32;
            return Err(AccentError::Contrast { colour: text.to_owned(), hundredths });
        }
        Ok(Self::of([red, green, blue]))
    }

    /// The accent with this colour on light pages.
    fn of(light: [u8; 3]) -> Self {
        // White has enough contrast, so that the search ends.
        let lighter = (0..=20).map(|step| {
            light.map(|part| part + (f64::from(255 - part) * f64::from(step) / 20.0) as u8)
        });
        let dark = lighter
            .into_iter()
            .find(|colour| contrast(*colour, DARK_BACKGROUND) >= CONTRAST + 1.5)
            .unwrap_or(WHITE);
        Self { light, dark }
    }

    /// The colour on light pages, as in a style sheet.
    pub fn light(&self) -> String {
        hexadecimal(self.light)
    }

    /// The colour on dark pages, as in a style sheet.
    pub fn dark(&self) -> String {
        hexadecimal(self.dark)
    }
}

fn hexadecimal([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Contrast ratio of two colours [wcag22 §1.4.3].
fn contrast(one: [u8; 3], two: [u8; 3]) -> f64 {
    let (one, two) = (luminance(one), luminance(two));
    (one.max(two) + 0.05) / (one.min(two) + 0.05)
}

/// Relative luminance of a colour, from 0 to 1 [wcag22 §6].
fn luminance(colour: [u8; 3]) -> f64 {
    let [red, green, blue] = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accent_is_readable_on_light_and_dark_pages() {
        for colour in ["#1f4e79", "#000000", "#7a1f2b", "#006400", "#5b2c83", "#767676"] {
            let accent = Accent::parse(colour).unwrap();
            assert_eq!(accent.light(), colour);
            assert!(contrast(accent.dark, DARK_BACKGROUND) >= CONTRAST, "{accent:?}");
        }
        for colour in ["", "#fff", "red", "1f4e79", "#1f4e7g", "#+f4e79", "#1f4e79 "] {
            assert_eq!(Accent::parse(colour), Err(AccentError::Form(colour.to_owned())));
        }
        let refused = Accent::parse("#ffcc00").unwrap_err().to_string();
        assert_eq!(refused, "`#ffcc00` has a contrast of 1.51 to white, and text needs 4.5");
    }
}
