//! The tokenizer: framing, the stack of open elements, references.

use super::encoding;
use super::entities::Entities;
use super::input::{EOF_HELP, Input, InputEnd};
use super::namespaces::{Namespaces, Ns};
use super::references::{attribute_value, line_ends, references};
use super::scope::{TOO_EXPANDED, resolve};
use super::tag::{self, Fault, Kind, RawAttribute, RawName, is_space};
use super::{DEFAULT_MAX_DOCUMENT_LENGTH, Limits};
use crate::{SyntaxError, excerpt};
use memchr::{memchr, memchr3, memmem};
use quick_xml::parser::{ElementParser, Parser as _};
use std::borrow::Cow;

/// Pulls tokens out of pushed bytes; see the [module](super) for what it refuses.
///
/// ```
/// use abreast_webtypes::xml::{Ns, Reader, Token};
///
/// let mut reader = Reader::new(&["urn:example"]);
/// reader.push(b"<e:list xmlns:e='urn:example'><e:item n='1'>a &amp; ");
/// reader.push(b"b</e:item></e:list>");
/// reader.finish();
/// let mut seen = Vec::new();
/// loop {
///     match reader.next()? {
///         Token::Start(element) if element.ns() == Ns::known(0) => seen.push(element.local().to_owned()),
///         Token::Text(text) => seen.push(text.to_owned()),
///         Token::Done => break,
///         _ => {}
///     }
/// }
/// assert_eq!(seen, ["list", "item", "a & b"]);
/// # Ok::<(), abreast_webtypes::SyntaxError>(())
/// ```
pub struct Reader {
    input: Input,
    limits: Limits,
    namespaces: Namespaces,
    entities: Entities,
    entities_allowed: bool,
    /// A DOCTYPE was read.
    doctype: bool,
    markup_kept: bool,
    /// Names of the open elements, joined, and the start of each name.
    names: String,
    open: Vec<usize>,
    stage: Stage,
    /// Start of the current token.
    start: usize,
    /// How many bytes of the unfinished token were searched for its end already.
    searched: usize,
    tag: ElementParser,
    /// The unfinished text has a reference or a bracket in it.
    special: bool,
    attributes: Vec<RawAttribute>,
    /// Text with its references replaced.
    decoded: String,
    /// The element just reported was empty: its end comes next.
    end_due: bool,
    /// An end tag may have another prefix than its start tag.
    end_prefixes_free: bool,
    /// Repairs since the last [`Reader::take_repairs`].
    repairs: Vec<(&'static str, String)>,
    failed: Option<SyntaxError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing read yet, not even white space.
    First,
    Prolog,
    Content,
    Epilog,
}

/// A token; borrowed from the reader until the next call.
#[derive(Debug)]
pub enum Token<'a> {
    /// No complete token is in hand: push more, or finish.
    NeedInput,
    /// Start tag of an element, or an empty-element tag.
    Start(Element<'a>),
    /// The innermost open element ends.
    End,
    /// Text or a CDATA section inside the root element, with references replaced and line ends
    /// changed to `\n` [xml §2.11]. The text of an element may arrive in several tokens.
    Text(&'a str),
    /// A comment or processing instruction inside the root element, as written; only after
    /// [`Reader::keep_markup`].
    Markup(&'a str),
    /// The document is complete and well-formed.
    Done,
}

/// The start of an element.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    ns: Ns,
    name: RawName,
    token: &'a str,
    attributes: &'a [RawAttribute],
    reader: &'a Reader,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("depth", &self.depth()).finish_non_exhaustive()
    }
}

impl<'a> Element<'a> {
    /// Namespace of the element, as resolved at its start tag.
    pub fn ns(&self) -> Ns {
        self.ns
    }

    /// Local part of the element's name, without prefix.
    pub fn local(&self) -> &'a str {
        self.name.local(self.token)
    }

    /// Prefix of the element's name, empty without a prefix.
    pub fn prefix(&self) -> &'a str {
        self.name.prefix(self.token)
    }

    /// Whether the tag is a name and nothing else, as an end tag is.
    pub fn is_bare(&self) -> bool {
        self.attributes.is_empty() && !self.token.ends_with("/>")
    }

    /// The name of its namespace, empty without one.
    pub fn namespace(&self) -> &'a str {
        self.reader.namespaces.uri(self.prefix())
    }

    /// Attributes of the element, without namespace declarations.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let (token, reader) = (self.token, self.reader);
        self.attributes.iter().filter(|raw| raw.kind == Kind::Attribute).map(move |raw| Attribute {
            raw: *raw,
            token,
            reader,
        })
    }

    /// The value of an attribute without namespace.
    pub fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        self.attributes()
            .find(|attribute| attribute.ns() == Ns::NONE && attribute.local() == name)
            .map(|a| a.value())
    }
}

/// An attribute of a start tag.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    raw: RawAttribute,
    token: &'a str,
    reader: &'a Reader,
}

impl<'a> Attribute<'a> {
    /// Namespace of the attribute; [`Ns::NONE`] without a prefix.
    pub fn ns(&self) -> Ns {
        self.raw.ns
    }

    /// Local part of the attribute's name, without prefix.
    pub fn local(&self) -> &'a str {
        self.raw.name.local(self.token)
    }

    /// Prefix of the attribute's name, empty without a prefix.
    pub fn prefix(&self) -> &'a str {
        self.raw.name.prefix(self.token)
    }

    /// The name of its namespace, empty without one.
    pub fn namespace(&self) -> &'a str {
        // An attribute without a prefix has no namespace, even with a default namespace [xml-names
        // §6.2].
        match self.prefix() {
            "" => "",
            prefix => self.reader.namespaces.uri(prefix),
        }
    }

    /// Value with references replaced and white space changed to blanks [xml §3.3.3].
    pub fn value(&self) -> Cow<'a, str> {
        let raw = self.raw.value(self.token);
        if self.raw.special {
            // References were checked when the tag was read.
            Cow::Owned(attribute_value(raw, &self.reader.entities).unwrap_or_default())
        } else {
            Cow::Borrowed(raw)
        }
    }
}

/// The result of a step, as positions rather than borrows.
enum TokenSpan {
    NeedInput,
    Start { ns: Ns, name: RawName, end: usize },
    End,
    Text { from: usize, to: usize },
    Decoded,
    Markup { from: usize, to: usize },
    Nothing,
    Done,
}

const DOCTYPE_HELP: &str =
    "write the document without a DOCTYPE, or with `<!ENTITY NAME \"plain text\">` only";

impl Reader {
    /// A reader that numbers these namespaces: [`Ns::known`] of an index in the list.
    pub fn new(namespaces: &'static [&'static str]) -> Self {
        Self::with_limit(namespaces, DEFAULT_MAX_DOCUMENT_LENGTH)
    }

    /// The same with another limit for the bytes of the whole document.
    pub fn with_limit(namespaces: &'static [&'static str], max_length: u64) -> Self {
        Self::with_limits(namespaces, Limits { document_length: max_length, ..Limits::default() })
    }

    /// The same with other limits.
    pub fn with_limits(namespaces: &'static [&'static str], limits: Limits) -> Self {
        Self {
            input: Input::new(limits.document_length),
            limits,
            namespaces: Namespaces::new(namespaces, limits.namespaces),
            entities: Entities::default(),
            entities_allowed: false,
            doctype: false,
            markup_kept: false,
            names: String::new(),
            open: Vec::with_capacity(8),
            stage: Stage::First,
            start: 0,
            searched: 0,
            tag: ElementParser::default(),
            special: false,
            attributes: Vec::with_capacity(8),
            decoded: String::new(),
            end_due: false,
            end_prefixes_free: false,
            repairs: Vec::new(),
            failed: None,
        }
    }

    /// Accepts a DOCTYPE that declares entities of plain text and nothing else; they are replaced.
    ///
    /// Still refused: an external DTD, external and parameter entities, entities that refer to
    /// others or contain markup, other declarations, and entities that would make the document
    /// more than 16 times longer.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::xml::{Reader, Token};
    ///
    /// let mut reader = Reader::new(&[]).allow_entities();
    /// reader.push(br#"<!DOCTYPE note [<!ENTITY lib "City Library">]><note>&lib;, shelf 7</note>"#);
    /// reader.finish();
    /// let mut text = String::new();
    /// loop {
    ///     match reader.next()? {
    ///         Token::Text(part) => text.push_str(part),
    ///         Token::Done => break,
    ///         _ => {}
    ///     }
    /// }
    /// assert_eq!(text, "City Library, shelf 7");
    /// # Ok::<(), abreast_webtypes::SyntaxError>(())
    /// ```
    #[must_use]
    pub fn allow_entities(mut self) -> Self {
        self.entities_allowed = true;
        self
    }

    /// Reports comments and processing instructions inside the root element as [`Token::Markup`].
    #[must_use]
    pub fn keep_markup(mut self) -> Self {
        self.markup_kept = true;
        self
    }

    /// Repairs two faults with a single possible meaning: an end tag whose prefix differs from its
    /// start tag, and the use of one of `prefixes`, each with its namespace, without a
    /// declaration. [`Reader::take_repairs`] reports the repairs.
    #[must_use]
    pub fn repair(mut self, prefixes: &[(&str, &str)]) -> Self {
        self.end_prefixes_free = true;
        for (prefix, uri) in prefixes {
            self.namespaces.assume(prefix, uri);
        }
        self
    }

    /// Repairs in the tokens pulled since the last call: `xml.end-tag` or `xml.prefix`, and the
    /// fault.
    pub fn take_repairs(&mut self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let undeclared = std::mem::take(&mut self.namespaces.undeclared).into_iter();
        let undeclared = undeclared.map(|prefix| {
            ("xml.prefix", format!("the prefix `{}` is not declared", excerpt(&prefix)))
        });
        std::mem::take(&mut self.repairs).into_iter().chain(undeclared)
    }

    /// Takes the start tag last pulled for the end tag of its parent. No other end is reported.
    pub fn take_as_end(&mut self) {
        self.end_due = false;
        self.close();
        self.close();
    }

    /// Sets the media type of the document, before the first byte. A `charset` of ISO-8859-1 or
    /// windows-1252 applies from the first byte on that is not UTF-8, since many servers send a
    /// default `charset` for documents in any encoding.
    /// With a `charset` of UTF-16 the document needs no byte order mark (RFC 7303).
    pub fn use_charset(&mut self, media_type: &str) {
        let charset = encoding::charset(media_type);
        if charset.is_some_and(encoding::is_windows_1252) {
            self.input.fall_back();
        }
        if charset.is_some_and(encoding::is_utf_16) {
            self.input.expect_utf_16();
        }
    }

    /// Reads the start of a document in any encoding, to find out the kind of the document. The
    /// call precedes the first byte. The text is read as windows-1252 from the first byte on that
    /// is not UTF-8, and the declaration is ignored.
    pub fn guess_encoding(&mut self) {
        self.input.guess();
    }

    /// Whether the document is in UTF-8, as far as it was read.
    pub fn is_utf_8(&self) -> bool {
        self.input.is_utf_8()
    }

    /// Takes more bytes. Pull until [`Token::NeedInput`] between pushes, else they pile up.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.input.push(bytes);
            self.start = 0;
        }
    }

    /// Signals the end of the input.
    pub fn finish(&mut self) {
        self.input.finish();
    }

    /// The next token.
    ///
    /// # Errors
    /// The document is not well-formed or too large; the same error again at every later call.
    #[expect(
        clippy::should_implement_trait,
        reason = "tokens borrow from the reader, which an iterator cannot express"
    )]
    pub fn next(&mut self) -> Result<Token<'_>, SyntaxError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        loop {
            match self.step() {
                Ok(TokenSpan::Nothing) => {}
                Ok(found) => return Ok(self.token(&found)),
                Err(error) => {
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }

    /// The line of the token last pulled, from 1.
    pub fn line(&mut self) -> u64 {
        self.input.line_at(self.start)
    }

    /// A fault at the token last pulled.
    pub fn error(&self, code: &'static str, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(code, self.input.locate(self.start), message)
    }

    /// How many elements are open; after [`Token::Start`] that one included.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    fn token(&self, found: &TokenSpan) -> Token<'_> {
        match *found {
            TokenSpan::NeedInput | TokenSpan::Nothing => Token::NeedInput,
            TokenSpan::Start { ns, name, end } => Token::Start(Element {
                ns,
                name,
                token: &self.input.text()[self.start..end],
                attributes: &self.attributes,
                reader: self,
            }),
            TokenSpan::End => Token::End,
            TokenSpan::Text { from, to } => Token::Text(&self.input.text()[from..to]),
            TokenSpan::Decoded => Token::Text(&self.decoded),
            TokenSpan::Markup { from, to } => Token::Markup(&self.input.text()[from..to]),
            TokenSpan::Done => Token::Done,
        }
    }

    fn step(&mut self) -> Result<TokenSpan, SyntaxError> {
        if self.end_due {
            self.end_due = false;
            return Ok(self.close());
        }
        self.start = self.input.at;
        match self.input.rest().as_bytes() {
            [] | [b'<'] => self.incomplete(),
            [b'<', b'/', ..] => self.end_tag(),
            [b'<', b'!', ..] => self.declaration(),
            [b'<', b'?', ..] => self.instruction(),
            [b'<', ..] => self.start_tag(),
            _ if self.stage == Stage::Content => self.text(),
            _ => self.white_space(),
        }
    }

    /// No complete token is in hand.
    fn incomplete(&mut self) -> Result<TokenSpan, SyntaxError> {
        self.check_length(self.input.rest().len())?;
        match self.input.behind()? {
            InputEnd::Unknown => Ok(TokenSpan::NeedInput),
            InputEnd::End if self.stage == Stage::Epilog && self.input.rest().is_empty() => {
                Ok(TokenSpan::Done)
            }
            InputEnd::End => {
                let place = self.input.locate(self.input.text().len());
                let message = match (self.stage, self.open.last()) {
                    (Stage::Content, Some(start)) => {
                        format!("the document ends inside `{}`", excerpt(&self.names[*start..]))
                    }
                    _ if self.input.rest().is_empty() => {
                        "the document has no root element".to_owned()
                    }
                    _ => "the document ends inside markup".to_owned(),
                };
                Err(SyntaxError::new("xml.eof", place, message).with_help(EOF_HELP))
            }
        }
    }

    fn check_length(&self, length: usize) -> Result<(), SyntaxError> {
        let limit = self.limits.token_length;
        if length > limit {
            let message = format!("a tag, text or comment is longer than {limit} bytes");
            return Err(self.error("xml.size", message));
        }
        Ok(())
    }

    /// The token has that many bytes: they are consumed.
    fn take(&mut self, length: usize) -> Result<(), SyntaxError> {
        self.check_length(length)?;
        self.input.at += length;
        self.searched = 0;
        if self.stage == Stage::First {
            self.stage = Stage::Prolog;
        }
        Ok(())
    }

    fn fault(&self, (code, at, message): Fault) -> SyntaxError {
        SyntaxError::new(code, self.input.locate(self.start + at), message)
    }

    fn syntax<T>(&self, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(self.error("xml.syntax", message))
    }

    fn start_tag(&mut self) -> Result<TokenSpan, SyntaxError> {
        // Nearly always the whole tag is in hand and good: one pass. Else its end is found first,
        // so that the outcome does not depend on how much is in hand.
        let quick = if self.searched == 0 {
            tag::read(self.input.rest(), &mut self.attributes)
        } else {
            Ok(None)
        };
        let tag = if let Ok(Some(tag)) = quick {
            self.take(tag.length)?;
            self.allow_element()?;
            tag
        } else {
            let rest = self.input.rest();
            let from = self.searched.max(1);
            let Some(found) = self.tag.feed(&rest.as_bytes()[from..]) else {
                self.searched = rest.len();
                return self.incomplete();
            };
            self.tag = ElementParser::default();
            let length = from + found + 1;
            self.take(length)?;
            self.allow_element()?;
            let token = &self.input.text()[self.start..self.start + length];
            match tag::read(token, &mut self.attributes) {
                Ok(Some(tag)) => tag,
                Ok(None) => return self.syntax("this is not a tag"),
                Err(fault) => return Err(self.fault(fault)),
            }
        };
        let end = self.start + tag.length;
        let token = &self.input.text()[self.start..end];
        self.open.push(self.names.len());
        self.names.push_str(tag.name.whole(token));
        let ns = resolve(
            token,
            tag.name,
            &mut self.attributes,
            &mut self.namespaces,
            &mut self.entities,
            (self.open.len(), self.input.taken()),
        )
        .map_err(|fault| self.fault(fault))?;
        self.stage = Stage::Content;
        self.end_due = tag.closed;
        Ok(TokenSpan::Start { ns, name: tag.name, end })
    }

    fn allow_element(&self) -> Result<(), SyntaxError> {
        if self.stage == Stage::Epilog {
            return self.syntax("a second root element");
        }
        let limit = self.limits.depth;
        if self.open.len() == limit {
            return Err(self.error("xml.depth", format!("elements are nested deeper than {limit}")));
        }
        Ok(())
    }

    fn end_tag(&mut self) -> Result<TokenSpan, SyntaxError> {
        let rest = self.input.rest();
        let from = self.searched.max(2);
        let Some(found) = rest.as_bytes().get(from..).and_then(|bytes| memchr(b'>', bytes)) else {
            self.searched = rest.len();
            return self.incomplete();
        };
        let end = from + found;
        self.take(end + 1)?;
        let written = self.input.text()[self.start + 2..self.start + end]
            .trim_end_matches([' ', '\t', '\n', '\r']);
        let Some(start) = self.open.last() else {
            return self.syntax(format!("`</{}>` closes nothing", excerpt(written)));
        };
        if self.names[*start..] != *written {
            let due = &self.names[*start..];
            let message = format!("`</{}>` closes `<{}>`", excerpt(written), excerpt(due));
            if !self.end_prefixes_free || local_name(due) != local_name(written) {
                return self.syntax(message);
            }
            self.repairs.push(("xml.end-tag", message));
        }
        Ok(self.close())
    }

    fn close(&mut self) -> TokenSpan {
        self.namespaces.leave(self.open.len());
        if let Some(start) = self.open.pop() {
            self.names.truncate(start);
        }
        if self.open.is_empty() {
            self.stage = Stage::Epilog;
        }
        TokenSpan::End
    }

    fn text(&mut self) -> Result<TokenSpan, SyntaxError> {
        let rest = self.input.rest().as_bytes();
        // Most texts are the indentation before a tag, too short to be worth a search.
        let mut at = self
            .searched
            .max(rest.iter().take(16).position(|byte| !is_space(*byte)).unwrap_or_default());
        let length = loop {
            if rest[at..].first() == Some(&b'<') {
                break at;
            }
            let Some(found) = memchr3(b'<', b'&', b']', &rest[at..]) else {
                self.searched = rest.len();
                return self.incomplete();
            };
            at += found;
            if rest[at] == b'<' {
                break at;
            }
            self.special = true;
            at += 1;
        };
        self.take(length)?;
        let (from, to) = (self.start, self.start + length);
        if !std::mem::take(&mut self.special) && !self.input.has_carriage_returns() {
            return Ok(TokenSpan::Text { from, to });
        }
        let raw = &self.input.text()[from..to];
        if let Some(at) = memmem::find(raw.as_bytes(), b"]]>") {
            return Err(self.fault(("xml.syntax", at, "`]]>` outside a CDATA section".to_owned())));
        }
        let decoded = references(&line_ends(raw), &self.entities)
            .map_err(|message| self.fault(("xml.syntax", 0, message)))?;
        if !self.entities.spend(length, decoded.len(), self.input.taken()) {
            return Err(self.error("xml.doctype", TOO_EXPANDED));
        }
        self.decoded = decoded;
        Ok(TokenSpan::Decoded)
    }

    /// Before and after the root element only white space may stand between markup.
    fn white_space(&mut self) -> Result<TokenSpan, SyntaxError> {
        let rest = self.input.rest().as_bytes();
        let length = rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len());
        if length < rest.len() && rest[length] != b'<' {
            let message = match self.stage {
                Stage::Epilog => "text behind the root element",
                _ => "text before the root element: this is no XML document",
            };
            return Err(self.fault(("xml.syntax", length, message.to_owned())));
        }
        // White space is not stored and does not count against a limit.
        self.input.at += length;
        self.stage = if self.stage == Stage::First { Stage::Prolog } else { self.stage };
        Ok(TokenSpan::Nothing)
    }

    /// A comment, a CDATA section, or a declaration that is refused.
    fn declaration(&mut self) -> Result<TokenSpan, SyntaxError> {
        const COMMENT: &[u8] = b"<!--";
        const CDATA: &[u8] = b"<![CDATA[";
        const DOCTYPE: &[u8] = b"<!DOCTYPE";
        let rest = self.input.rest().as_bytes();
        let begins = |with: &[u8]| rest.iter().zip(with).all(|(one, other)| one == other);
        if begins(COMMENT) && rest.len() >= COMMENT.len() {
            let Some(end) = self.end_of(4, b"-->") else { return self.incomplete() };
            self.take(end)?;
            let inside = &self.input.text().as_bytes()[self.start + 4..self.start + end - 3];
            if memmem::find(inside, b"--").is_some() || inside.ends_with(b"-") {
                return self.syntax("`--` inside a comment");
            }
            return Ok(self.markup(end));
        }
        if begins(CDATA) && rest.len() >= CDATA.len() {
            if self.stage != Stage::Content {
                return self.syntax("text outside the root element");
            }
            let Some(end) = self.end_of(CDATA.len(), b"]]>") else { return self.incomplete() };
            self.take(end)?;
            let (from, to) = (self.start + CDATA.len(), self.start + end - 3);
            if !self.input.has_carriage_returns() {
                return Ok(TokenSpan::Text { from, to });
            }
            self.decoded = line_ends(&self.input.text()[from..to]).into_owned();
            return Ok(TokenSpan::Decoded);
        }
        if begins(DOCTYPE) && rest.len() >= DOCTYPE.len() && self.entities_allowed {
            return self.doctype();
        }
        if begins(DOCTYPE) && rest.len() >= DOCTYPE.len() {
            // The declaration is neither shown nor expanded, since a DOCTYPE may refer to files and
            // grow without bound.
            return Err(self
                .error("xml.doctype", "the document has a DOCTYPE, which is refused unread")
                .with_help("remove it: these documents need neither DTD nor entities"));
        }
        if [COMMENT, CDATA, DOCTYPE].into_iter().any(begins) {
            self.incomplete()
        } else {
            self.syntax("unknown markup")
        }
    }

    /// Span of a consumed comment or processing instruction with `length` bytes.
    fn markup(&self, length: usize) -> TokenSpan {
        if self.markup_kept && self.stage == Stage::Content {
            TokenSpan::Markup { from: self.start, to: self.start + length }
        } else {
            TokenSpan::Nothing
        }
    }

    /// A DOCTYPE with entities of plain text.
    fn doctype(&mut self) -> Result<TokenSpan, SyntaxError> {
        if self.doctype || !matches!(self.stage, Stage::First | Stage::Prolog) {
            return self.syntax("a DOCTYPE that is not before the root element, or a second one");
        }
        let found = self.entities.read(self.input.rest());
        match found.map_err(|fault| self.fault(fault).with_help(DOCTYPE_HELP))? {
            None => self.incomplete(),
            Some(length) => {
                self.take(length)?;
                self.doctype = true;
                Ok(TokenSpan::Nothing)
            }
        }
    }

    /// A processing instruction, skipped, or the XML declaration.
    fn instruction(&mut self) -> Result<TokenSpan, SyntaxError> {
        let Some(end) = self.end_of(2, b"?>") else { return self.incomplete() };
        let is_first = self.stage == Stage::First;
        self.take(end)?;
        let token = &self.input.text()[self.start..self.start + end];
        let length = end;
        let inside = &token.as_bytes()[..end - 2];
        let end = inside.iter().position(|byte| is_space(*byte)).unwrap_or(inside.len());
        let target = tag::name(token, &inside[..end], 2).map_err(|fault| self.fault(fault))?;
        match target.whole(token) {
            "xml" if is_first => self.xml_declaration(&token[end..token.len() - 2]),
            target if target.eq_ignore_ascii_case("xml") => {
                self.syntax("an XML declaration that is not at the very start")
            }
            _ => Ok(self.markup(length)),
        }
    }

    /// `version`, then perhaps `encoding` and `standalone` [xml §2.8].
    fn xml_declaration(&self, inside: &str) -> Result<TokenSpan, SyntaxError> {
        let tag = format!("<x{inside}>");
        let mut attributes = Vec::new();
        let read = tag::read(&tag, &mut attributes)
            .map_err(|(code, at, message)| self.fault((code, at + 3, message)))?;
        if !read.is_some_and(|read| read.length == tag.len() && !read.closed) {
            return self.syntax("the XML declaration is not well-formed");
        }
        let mut pairs =
            attributes.iter().map(|raw| (raw.name.whole(&tag), raw.value(&tag))).peekable();
        if !pairs.next_if(|pair| pair.0 == "version").is_some_and(|pair| pair.1.starts_with("1.")) {
            return self.syntax("the XML declaration has no version 1.x");
        }
        let stated = pairs.next_if(|pair| pair.0 == "encoding");
        if let Some((_, encoding)) = stated.filter(|(_, encoding)| !self.input.may_be(encoding)) {
            let message = format!("the document declares the encoding `{}`", excerpt(encoding));
            return Err(self
                .error("xml.encoding", message)
                .with_help("save it as UTF-8 and declare that; UTF-16 needs a byte order mark"));
        }
        pairs.next_if(|pair| pair.0 == "standalone" && matches!(pair.1, "yes" | "no"));
        match pairs.next() {
            Some((name, _)) => {
                self.syntax(format!("`{}` is wrong in the XML declaration", excerpt(name)))
            }
            None => Ok(TokenSpan::Nothing),
        }
    }

    /// How long the token is that ends with `mark`, when its end is in hand.
    fn end_of(&mut self, after: usize, mark: &[u8]) -> Option<usize> {
        let rest = self.input.rest().as_bytes();
        let from = after.max(self.searched.saturating_sub(mark.len() - 1));
        let found = rest.get(from..).and_then(|bytes| memmem::find(bytes, mark));
        if found.is_none() {
            self.searched = rest.len();
        }
        found.map(|found| from + found + mark.len())
    }
}

/// A name without its prefix.
fn local_name(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}
