//! The parts that all pages have, and the values that pages show.

use crate::publish::{Institution, PublishError, Publisher, Rendered};
use abreast_webtypes::{Timestamp, visible_lines};
use askama::Template;
use askama::filters::Safe;
use std::fmt;

/// Value of the `Content-Type` header of pages.
pub const HTML: &str = "text/html; charset=utf-8";

/// Heading of the site without an institution.
const NAMELESS: &str = "Published collections";
/// Heading of the pages of a server without sets, which is a hub only.
const HUB: &str = "WebSub hub";

/// Escapes text for a page. Markup and characters that change the direction of text are shown as
/// visible characters.
#[derive(Clone, Copy, Debug)]
pub struct Escape;

impl askama::filters::Escaper for Escape {
    fn write_escaped_str<W: fmt::Write>(&self, mut out: W, text: &str) -> fmt::Result {
        let text = visible_lines(text);
        let mut rest: &str = &text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            out.write_str(&rest[..at])?;
            out.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        out.write_str(rest)
    }
}

/// The frame of a page: its title, the institution, and the way to the page.
#[derive(Clone, Debug)]
pub struct Shell<'p> {
    pub(crate) title: &'p str,
    pub(crate) base: &'p str,
    pub(crate) institution: &'p Institution,
    pub(crate) trail: Vec<Place>,
    /// The server publishes sets. Pages of a hub alone do not refer to documents of sets.
    pub(crate) has_sets: bool,
}

/// A page above a page.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) url: String,
}

impl<'p> Shell<'p> {
    /// The frame of a page with this title, on a site with this public base URL.
    pub fn new(title: &'p str, base: &'p str, institution: &'p Institution) -> Self {
        Self { title, base, institution, trail: Vec::new(), has_sets: true }
    }

    /// The frame of a page with this title, on the site of a publisher.
    pub fn of(title: &'p str, publisher: &'p Publisher) -> Self {
        let shell = Self::new(title, publisher.urls().base(), publisher.institution());
        Self { has_sets: !publisher.sets().is_empty(), ..shell }
    }

    /// Adds a page above this one, the nearest last.
    #[must_use]
    pub fn below(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.trail.push(Place { name: name.into(), url: url.into() });
        self
    }

    pub(crate) fn name(&self) -> &str {
        if !self.has_sets && self.institution.name.is_empty() {
            return HUB;
        }
        name_of(self.institution)
    }

    /// URL of the page above all others.
    pub(crate) fn home(&self) -> String {
        format!("{}{}", self.base, if self.has_sets { "" } else { "hub" })
    }

    pub(crate) fn logo(&self) -> Option<&str> {
        self.institution.logo.as_deref()
    }

    pub(crate) fn contact(&self) -> Option<Safe<Linked<'_>>> {
        self.institution.contact.as_deref().map(Linked::new)
    }

    /// A policy in a page cannot restrict framing; the HTTP header does that.
    pub(crate) fn policy_in_page(&self) -> String {
        content_security_policy(self.base, self.institution).replace("; frame-ancestors 'none'", "")
    }
}

/// The institution's name for headings.
pub(super) fn name_of(institution: &Institution) -> &str {
    if institution.name.is_empty() { NAMELESS } else { &institution.name }
}

/// Content security policy of all pages: the style sheet, the script and the images of this site,
/// and nothing else. Published files can be loaded as images, and never as scripts or styles.
pub fn content_security_policy(base: &str, institution: &Institution) -> String {
    let logo = institution.logo.as_deref().unwrap_or_default();
    // A source in a policy ends at a space, and a directive at a semicolon.
    let logo = if logo.contains([' ', ';', ',']) { "" } else { logo };
    format!(
        "default-src 'none'; style-src {base}style.css; script-src {base}live.js {base}search.js; connect-src 'self' {base}; \
         img-src 'self' {base} {logo}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

/// Renders a page.
pub(crate) fn page(template: &impl Template) -> Result<Rendered, PublishError> {
    Ok(Rendered { bytes: text_of(template)?, content_type: HTML })
}

/// Renders a template.
pub(super) fn text_of(template: &impl Template) -> Result<Vec<u8>, PublishError> {
    let mut text = String::with_capacity(16 << 10);
    template.render_into(&mut text).map_err(|error| {
        PublishError::Cache(std::io::Error::other(format!("cannot render a page: {error}")))
    })?;
    Ok(text.into_bytes())
}

/// A page whose content is rendered elsewhere.
#[derive(Template)]
#[template(path = "frame.html")]
struct Frame<'p> {
    shell: Shell<'p>,
    main: &'p str,
}

/// Puts the content of a page, in HTML, into the frame of all pages. An empty text means that
/// rendering failed, which content cannot cause.
pub fn framed(shell: Shell<'_>, main: &str) -> String {
    Frame { shell, main }.render().unwrap_or_default()
}

/// Content of the page of an error, for browsers.
#[derive(Template)]
#[template(path = "problem.html")]
struct Problem<'p> {
    title: &'p str,
    detail: &'p str,
    help: Option<&'p str>,
    /// URL of the published sets, if there are any.
    base: Option<&'p str>,
}

/// Renders the page of an error.
pub fn problem_page(shell: Shell<'_>, detail: &str, help: Option<&str>) -> String {
    let base = shell.has_sets.then_some(shell.base);
    let content = Problem { title: shell.title, detail, help, base };
    let main = content.render().unwrap_or_default();
    framed(shell, &main)
}

/// A time, written for people and for programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(pub(crate) Timestamp);

impl Time {
    /// The time as HTML.
    pub(crate) const fn of(time: Timestamp) -> Safe<Self> {
        Safe(Self(time))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.0.to_string();
        let (day, time) = exact.split_once('T').unwrap_or((&exact, ""));
        let minutes = time.get(..5).unwrap_or_default();
        write!(f, "<time datetime=\"{exact}\">{day} {minutes} UTC</time>")
    }
}

/// A number of bytes, such as `1.2 MB`.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut units = ["bytes", "kB", "MB", "GB", "TB", "PB"].into_iter();
        let mut unit = units.next().unwrap_or_default();
        while value >= 999.5
            && let Some(larger) = units.next()
        {
            value /= 1000.0;
            unit = larger;
        }
        let decimals = usize::from(unit != "bytes" && value < 9.95);
        write!(f, "{value:.decimals$} {unit}")
    }
}

/// A number with separated thousands, such as `12 345`.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.bytes().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str("\u{202f}")?;
            }
            write!(f, "{}", char::from(digit))?;
        }
        Ok(())
    }
}

/// Text that is a link if it is the URL of a page or a mail address. Links with other schemes could
/// run scripts or start programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linked<'t> {
    text: &'t str,
    rel: &'static str,
}

impl<'t> Linked<'t> {
    pub(super) const fn plain(text: &'t str) -> Self {
        Self { text, rel: "" }
    }

    /// The link as HTML.
    pub(super) const fn new(text: &'t str) -> Safe<Self> {
        Safe(Self::plain(text))
    }

    /// The link with a relation type, as HTML.
    pub(super) const fn with_rel(self, rel: &'static str) -> Safe<Self> {
        Safe(Self { rel, ..self })
    }
}

impl fmt::Display for Linked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = escaped(self.text);
        let plain = !self.text.contains(|c: char| c.is_whitespace() || c.is_control());
        let scheme = if plain && is_web(self.text) {
            ""
        } else if plain && self.text.contains('@') && !self.text.contains([':', '?']) {
            "mailto:"
        } else {
            return f.write_str(&shown);
        };
        let rel = match self.rel {
            "" => String::new(),
            rel => format!(" rel=\"{rel}\""),
        };
        write!(f, "<a{rel} href=\"{scheme}{shown}\">{shown}</a>")
    }
}

/// Whether a browser can open this IRI as a page.
pub(crate) fn is_web(iri: &str) -> bool {
    iri.starts_with("https://") || iri.starts_with("http://")
}

/// Text as [`Escape`] writes it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Writing to a string succeeds.
    let _ = askama::filters::Escaper::write_escaped_str(&Escape, &mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_and_mail_addresses_become_links() {
        let linked = |text| Linked::new(text).to_string();
        assert_eq!(
            Linked::plain("https://x.org/a").with_rel("license").to_string(),
            "<a rel=\"license\" href=\"https://x.org/a\">https://x.org/a</a>"
        );
        assert_eq!(linked("a@x.org"), "<a href=\"mailto:a@x.org\">a@x.org</a>");
        for text in [
            "CC0 1.0",
            "javascript:alert(1)//@",
            "data:text/html,x@y",
            "mailto:a@x.org?bcc=b",
            "https://x y",
        ] {
            assert!(!linked(text).contains("href"), "{text}");
        }
        assert_eq!(linked("<b>'\"&"), "&lt;b&gt;&#39;&quot;&amp;");
        assert_eq!(escaped("a\u{202e}b\u{1b}[2J\nc"), "a\\u202eb\\u001b[2J\nc");
    }

    #[test]
    fn numbers_and_times_are_written_for_people() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (9_960, "10 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (1 << 40, "1.1 TB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!(Count(1_234_567).to_string(), "1\u{202f}234\u{202f}567");
        assert_eq!(Count(12).to_string(), "12");
        let time = Time(Timestamp::from_micros(1_772_355_600_000_001)).to_string();
        assert_eq!(
            time,
            "<time datetime=\"2026-03-01T09:00:00.000001Z\">2026-03-01 09:00 UTC</time>"
        );
    }

    #[test]
    fn a_page_shows_a_problem_as_text() {
        let institution = Institution::default();
        let shell = Shell::new("404 Not Found", "https://h.example/x/", &institution);
        let page = problem_page(shell, "<script>", Some("a & \"b\""));
        assert!(page.contains("<h1>404 Not Found</h1>\n<p>&lt;script&gt;</p>"), "{page}");
        assert!(page.contains("<p>a &amp; &quot;b&quot;</p>"), "{page}");
        assert!(page.contains("<a href=\"https://h.example/x/\">"), "{page}");
    }

    #[test]
    fn the_logo_adds_no_directive_to_the_policy() {
        for logo in ["https://x.org/l.svg; script-src *", "a b", "a,b"] {
            let institution = Institution { logo: Some(logo.to_owned()), ..Institution::default() };
            let policy = content_security_policy("https://h.example/", &institution);
            assert_eq!(
                policy,
                content_security_policy("https://h.example/", &Institution::default())
            );
        }
    }
}
