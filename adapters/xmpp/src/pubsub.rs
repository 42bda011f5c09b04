//! Operations on nodes: create, publish, subscribe, read [xep-0060].

use crate::error::{Error, ErrorKind};
use crate::events::{Item, items_of};
use crate::node::Node;
use crate::session::Session;
use crate::stanza::escaped;
use abreast_webtypes::xml::{Reader, Token};
use std::fmt::Write as _;
use tokio_xmpp::minidom::Element;

const PUBSUB: &str = "http://jabber.org/protocol/pubsub";
const CONFIG: &str = "http://jabber.org/protocol/pubsub#node_config";
const OWNER: &str = "http://jabber.org/protocol/pubsub#owner";
const DISCO_ITEMS: &str = "http://jabber.org/protocol/disco#items";
const DISCO: &str = "http://jabber.org/protocol/disco#info";
const PING: &[u8] = b"<ping xmlns=\"urn:xmpp:ping\"/>";
const FORM: &str = "jabber:x:data";

impl Session {
    /// Publishes an item, replacing an item with the same identifier. The payload is a document
    /// with one root element; it is sent as it is, without its XML declaration.
    ///
    /// # Errors
    /// The service refuses, the payload is not one, or is too large, or the connection ended.
    pub async fn publish(&self, node: &Node, id: &str, payload: &[u8]) -> Result<(), Error> {
        // Before a payload that is too large is parsed.
        self.check_size(payload.len())?;
        let payload = element_of(payload)?;
        let mut request = format!(
            "<pubsub xmlns=\"{PUBSUB}\"><publish node=\"{}\"><item id=\"{}\">",
            escaped(node.name()),
            escaped(id)
        );
        request.push_str(payload);
        request.push_str("</item></publish></pubsub>");
        let published = self.request(node.service(), "set", request.as_bytes()).await;
        published.map(drop).map_err(|error| {
            let help = match error.kind() {
                ErrorKind::Forbidden => {
                    Some("ask the owner of the node to make the account a publisher")
                }
                _ => None,
            };
            error.about(format_args!("cannot publish to {node}"), help)
        })
    }

    /// Creates a node that everybody may subscribe to and only publishers publish to, and which
    /// stores the last [`kept_items`](crate::Account::kept_items) items. `payload_type` is the
    /// namespace of their root elements. Returns `false` if the node exists; an existing node is
    /// checked by [`check_node`](Self::check_node).
    ///
    /// # Errors
    /// Creating it is not allowed, an existing node is not ours, the service refuses for another
    /// reason, or the connection ended.
    pub async fn create(
        &self,
        node: &Node,
        title: &str,
        payload_type: &str,
    ) -> Result<bool, Error> {
        let mut form = format!("<x xmlns=\"{FORM}\" type=\"submit\">");
        let kept = self.kept_items.to_string();
        for (name, value) in [
            ("FORM_TYPE", CONFIG),
            ("pubsub#title", title),
            ("pubsub#access_model", "open"),
            ("pubsub#publish_model", "publishers"),
            ("pubsub#persist_items", "1"),
            ("pubsub#max_items", &kept),
            ("pubsub#deliver_payloads", "1"),
            ("pubsub#notify_retract", "1"),
            ("pubsub#type", payload_type),
        ] {
            let hidden = if name == "FORM_TYPE" { " type=\"hidden\"" } else { "" };
            let _ = write!(
                form,
                "<field var=\"{name}\"{hidden}><value>{}</value></field>",
                escaped(value)
            );
        }
        form.push_str("</x>");
        let name = escaped(node.name());
        let create = format!("<create node=\"{name}\"/>");
        let configured =
            format!("<pubsub xmlns=\"{PUBSUB}\">{create}<configure>{form}</configure></pubsub>");
        let plain = format!("<pubsub xmlns=\"{PUBSUB}\">{create}</pubsub>");
        match self.request(node.service(), "set", configured.as_bytes()).await {
            Ok(_) => return Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::Conflict => return self.check_node(node).await.map(|()| false),
                ErrorKind::Forbidden => return self.check_forbidden(node, error).await,
                ErrorKind::Refused => tracing::debug!(%node, %error, "a node was not created"),
                _ => return Err(not_created(node, error)),
            },
        }
        // A service that does not support one of the settings may still have nodes, with default
        // settings.
        let created = match self.request(node.service(), "set", plain.as_bytes()).await {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::Conflict => false,
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                return self.check_forbidden(node, error).await;
            }
            Err(error) => return Err(not_created(node, error)),
        };
        self.check_node(node).await.map(|()| created)
    }

    /// Checks a node that we may not create. If it does not exist, the error includes why it was
    /// not created.
    async fn check_forbidden(&self, node: &Node, forbidden: Error) -> Result<bool, Error> {
        match self.check_node(node).await {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let why = forbidden.message();
                let message = format!("{node} does not exist and cannot be created: {why}");
                Err(Error::new(ErrorKind::NotFound, message).with_help(
                    "ask the operator of the service to create it, or to let the account do so",
                ))
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that we may publish to a node that another account may have created: only publishers
    /// may publish there, and our account is a publisher or owner.
    ///
    /// # Errors
    /// It is not, the node does not exist, or the connection ended.
    pub async fn check_node(&self, node: &Node) -> Result<(), Error> {
        let refused = |why: String| {
            Error::new(ErrorKind::Conflict, format!("{node} is not used: {why}")).with_help(
                "name another node, or ask its owner to let this account, and no others, publish there",
            )
        };
        let (model, is_configuration) = self.publish_model(node).await?;
        match model.as_deref() {
            Some("publishers" | "whitelist") => {}
            Some(model) => {
                let model = abreast_webtypes::excerpt(model);
                return Err(refused(format!("others may publish there (publish model `{model}`)")));
            }
            // By default, only publishers may publish [xep-0060].
            None if is_configuration => {}
            None => {
                return Err(refused("the service does not state who may publish there".to_owned()));
            }
        }
        match self.affiliation(node).await? {
            Some(own) if !matches!(own.as_str(), "owner" | "publisher" | "publish-only") => {
                let owner = format!("it belongs to others, and {} is not a publisher", self.bare());
                Err(refused(owner))
            }
            // If the service does not list affiliations, publishing shows whether it is allowed.
            _ => Ok(()),
        }
    }

    /// The publish model of a node, from its configuration or from the information that the service
    /// gives to all users. The second value is true if it is from the configuration.
    async fn publish_model(&self, node: &Node) -> Result<(Option<String>, bool), Error> {
        let name = escaped(node.name());
        let configure = format!("<pubsub xmlns=\"{OWNER}\"><configure node=\"{name}\"/></pubsub>");
        match self.request(node.service(), "get", configure.as_bytes()).await {
            Ok(answer) => {
                let form = answer
                    .get_child("pubsub", OWNER)
                    .and_then(|pubsub| pubsub.get_child("configure", OWNER));
                return Ok((form.and_then(publish_model_of), true));
            }
            Err(error) if is_not_told(&error, self) => {}
            Err(error) => return Err(not_read(node, error)),
        }
        let query = format!("<query xmlns=\"{DISCO}\" node=\"{name}\"/>");
        let answer = self.request(node.service(), "get", query.as_bytes()).await;
        let answer = answer.map_err(|error| not_read(node, error))?;
        Ok((answer.get_child("query", DISCO).and_then(publish_model_of), false))
    }

    /// Our account's affiliation with a node [xep-0060]. `None` if the service does not report
    /// affiliations.
    async fn affiliation(&self, node: &Node) -> Result<Option<String>, Error> {
        let name = escaped(node.name());
        // First as an owner, who gets all affiliations; then only ours.
        for namespace in [OWNER, PUBSUB] {
            let request =
                format!("<pubsub xmlns=\"{namespace}\"><affiliations node=\"{name}\"/></pubsub>");
            let answer = match self.request(node.service(), "get", request.as_bytes()).await {
                Ok(answer) => answer,
                Err(error) if is_not_told(&error, self) => continue,
                Err(error) => return Err(not_read(node, error)),
            };
            let all = answer
                .get_child("pubsub", namespace)
                .and_then(|pubsub| pubsub.get_child("affiliations", namespace));
            let own = all.into_iter().flat_map(Element::children).find(|one| {
                let is_own = |jid: &str| {
                    jid.split('/').next().unwrap_or_default().eq_ignore_ascii_case(self.bare())
                };
                match namespace {
                    OWNER => one.attr("jid").is_some_and(is_own),
                    _ => one.attr("node").is_none_or(|of| of == node.name()),
                }
            });
            let own = own.and_then(|own| own.attr("affiliation")).unwrap_or("none");
            return Ok(Some(own.to_owned()));
        }
        Ok(None)
    }

    /// Subscribes our account to a node, for all its connections and until it unsubscribes.
    ///
    /// # Errors
    /// The service refuses, requires an approval by its owner, or the connection ended.
    pub async fn subscribe(&self, node: &Node) -> Result<(), Error> {
        let request = format!(
            "<pubsub xmlns=\"{PUBSUB}\"><subscribe node=\"{}\" jid=\"{}\"/></pubsub>",
            escaped(node.name()),
            escaped(self.bare())
        );
        let answer =
            self.request(node.service(), "set", request.as_bytes()).await.map_err(|error| {
                let help = help_of_reader(error.kind());
                error.about(format_args!("cannot subscribe to {node}"), help)
            })?;
        let subscription = answer
            .get_child("pubsub", PUBSUB)
            .and_then(|pubsub| pubsub.get_child("subscription", PUBSUB));
        match subscription.and_then(|subscription| subscription.attr("subscription")) {
            Some("subscribed") | None => Ok(()),
            Some(state) => {
                let message =
                    format!("{node}: the subscription is `{}`", abreast_webtypes::excerpt(state));
                Err(Error::new(ErrorKind::Refused, message)
                    .with_help("ask the node's owner to accept it"))
            }
        }
    }

    /// Sends presence, and waits until the server has processed it: without presence, the server
    /// drops events for this connection.
    ///
    /// # Errors
    /// When the connection ended.
    pub async fn be_present(&self) -> Result<(), Error> {
        self.announce("<presence/>").await?;
        // The server processes the stanzas of a connection in order. It answers pings even if it
        // does not support them.
        match self.request(self.domain(), "get", PING).await {
            Err(error) if error.kind() == ErrorKind::Timeout || self.is_closed() => Err(error),
            _ => Ok(()),
        }
    }

    /// The newest items of a node, at most `most`, in the order of the service; `None` if the
    /// service does not offer this request, which is optional [xep-0060 §6.5].
    ///
    /// # Errors
    /// The node does not exist, the service cannot answer at this moment, or the connection ended.
    pub async fn items(&self, node: &Node, most: u32) -> Result<Option<Vec<Item>>, Error> {
        let request = format!(
            "<pubsub xmlns=\"{PUBSUB}\"><items node=\"{}\" max_items=\"{most}\"/></pubsub>",
            escaped(node.name())
        );
        let answer = match self.request(node.service(), "get", request.as_bytes()).await {
            Err(error) if is_not_told(&error, self) => return Ok(None),
            answer => answer.map_err(|error| not_read(node, error))?,
        };
        let items =
            answer.get_child("pubsub", PUBSUB).and_then(|pubsub| pubsub.get_child("items", PUBSUB));
        let items = items.into_iter().flat_map(|items| items_of(items, node.name(), PUBSUB));
        Ok(Some(items.collect()))
    }

    /// The identifiers of a node's items. The oldest are first if the service stores the items in
    /// order.
    ///
    /// # Errors
    /// The service refuses, or the connection ended.
    pub async fn item_ids(&self, node: &Node) -> Result<Vec<String>, Error> {
        let name = escaped(node.name());
        let query = format!("<query xmlns=\"{DISCO_ITEMS}\" node=\"{name}\"/>");
        let answer = self.request(node.service(), "get", query.as_bytes()).await;
        let answer = answer.map_err(|error| not_read(node, error))?;
        let query = answer.get_child("query", DISCO_ITEMS);
        let items = query.into_iter().flat_map(Element::children);
        let mut ids: Vec<String> =
            items.filter_map(|item| item.attr("name")).map(str::to_owned).collect();
        // Some services list the newest item first, others last.
        if ids.len() > 1
            && let Some(newest) = self.items(node, 1).await?
            && newest.first().is_some_and(|item| item.id == ids[0])
        {
            ids.reverse();
        }
        Ok(ids)
    }

    /// The item of a node with this identifier, if it exists.
    ///
    /// # Errors
    /// The service refuses, or the connection ended.
    pub async fn item(&self, node: &Node, id: &str) -> Result<Option<Item>, Error> {
        let request = format!(
            "<pubsub xmlns=\"{PUBSUB}\"><items node=\"{}\"><item id=\"{}\"/></items></pubsub>",
            escaped(node.name()),
            escaped(id)
        );
        let answer = match self.request(node.service(), "get", request.as_bytes()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            answer => answer.map_err(|error| not_read(node, error))?,
        };
        let items =
            answer.get_child("pubsub", PUBSUB).and_then(|pubsub| pubsub.get_child("items", PUBSUB));
        let mut items = items.into_iter().flat_map(|items| items_of(items, node.name(), PUBSUB));
        Ok(items.find(|item| item.id == id))
    }

    /// Checks that an address is a service of nodes.
    ///
    /// # Errors
    /// It is not, it does not answer, or the connection ended.
    pub async fn check_service(&self, service: &str) -> Result<(), Error> {
        const HELP: &str = "name the service itself, often pubsub.DOMAIN";
        let request = format!("<query xmlns=\"{DISCO}\"/>");
        let answer = self.request(service, "get", request.as_bytes()).await.map_err(|error| {
            error.about(format_args!("cannot find out what {service} is"), Some(HELP))
        })?;
        let query = answer.get_child("query", DISCO);
        let mut identities = query.into_iter().flat_map(Element::children);
        let is_service = |child: &Element| {
            child.is("identity", DISCO) && child.attr("category") == Some("pubsub")
                || child.is("feature", DISCO) && child.attr("var") == Some(PUBSUB)
        };
        if identities.any(is_service) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Refused, format!("{service} does not publish and subscribe"))
            .with_help(HELP))
    }
}

fn not_created(node: &Node, error: Error) -> Error {
    error.about(format_args!("cannot create {node}"), None)
}

fn not_read(node: &Node, error: Error) -> Error {
    let help = help_of_reader(error.kind());
    error.about(format_args!("cannot read {node}"), help)
}

/// Help for a user who only reads.
const fn help_of_reader(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::NotFound => {
            Some("check the name of the node; a Source states it in its Sitemap (`rs:pubsubnode`)")
        }
        ErrorKind::Forbidden => Some("ask the owner of the node to let the account read it"),
        _ => None,
    }
}

/// Whether a service refuses a request: it is for owners only, or is not implemented [xep-0060]. A
/// transient failure is not a refusal.
fn is_not_told(error: &Error, session: &Session) -> bool {
    let is_answer = match error.kind() {
        ErrorKind::Forbidden | ErrorKind::Refused => true,
        ErrorKind::Unavailable => error.message().contains("service-unavailable"),
        _ => false,
    };
    is_answer && !session.is_closed()
}

/// The publish model in a form within an element.
fn publish_model_of(around: &Element) -> Option<String> {
    let form = around.get_child("x", FORM)?;
    let field = form.children().find(|field| field.attr("var") == Some("pubsub#publish_model"))?;
    field.get_child("value", FORM).map(Element::text).filter(|model| !model.is_empty())
}

/// The root element of a document, without declaration, comments, processing instructions and
/// document types, which must not be sent [rfc6120 §11.1].
fn element_of(document: &[u8]) -> Result<&str, Error> {
    let wrong =
        |why: &str| Error::new(ErrorKind::Protocol, format!("a payload cannot be sent: {why}"));
    let text = std::str::from_utf8(document).map_err(|_| wrong("it is not UTF-8"))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    let text = match text.strip_prefix("<?xml") {
        Some(rest) => {
            rest.split_once("?>").ok_or_else(|| wrong("its XML declaration has no end"))?.1.trim()
        }
        None => text,
    };
    // Anything except one well-formed element would end the stream, or send further stanzas in our
    // name.
    if ["<?", "<!"].iter().any(|start| text.starts_with(start))
        || ["?>", "-->"].iter().any(|end| text.ends_with(end))
    {
        return Err(wrong("there is more in it than one element"));
    }
    let mut reader = Reader::new(&[]).keep_markup();
    reader.push(text.as_bytes());
    reader.finish();
    loop {
        match reader.next().map_err(|error| wrong(&error.to_string()))? {
            Token::Done => return Ok(text),
            Token::Markup(_) => return Err(wrong("it has comments or processing instructions")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_well_formed_element_is_sent() {
        let sent = element_of(
            b"<?xml version=\"1.0\"?>\n<a xmlns=\"urn:x\" xmlns:b=\"urn:b\" b:c=\"1\"/>\n",
        )
        .unwrap();
        assert_eq!(sent, "<a xmlns=\"urn:x\" xmlns:b=\"urn:b\" b:c=\"1\"/>");
        for wrong in [
            "",
            "<a xmlns='urn:x'>",
            "<a xmlns='urn:x'/><b xmlns='urn:x'/>",
            "<a xmlns='urn:x'/></item>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a xmlns='urn:x'/>",
            "<a xmlns='urn:x'><!-- b --></a>",
            "<a xmlns='urn:x'><?b c?></a>",
            "<a xmlns='urn:x'/><!-- b -->",
            "<?b c?><a xmlns='urn:x'/>",
            "<b:a/>",
        ] {
            assert!(element_of(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(element_of(b"<a xmlns='urn:x'>\xff</a>").is_err());
    }
}
