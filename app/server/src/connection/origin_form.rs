//! Requests of HTTP/2 in the form that requests of HTTP/1.1 have.

use bytes::Bytes;
use http::header::{COOKIE, HOST};
use http::{HeaderValue, Method, Request, Uri, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use std::time::Duration;

/// Moves the host of a request of HTTP/2 from its address to the field `Host`, and joins its cookies
/// [rfc9113 §8.3.1, §8.2.3]. Two different hosts result in two fields `Host`, which are refused.
pub(crate) fn to_origin_form<B>(request: &mut Request<B>) {
    if request.version() != Version::HTTP_2 {
        return;
    }
    if let Some(authority) = request.uri().authority() {
        let host = HeaderValue::from_str(authority.as_str());
        let headers = request.headers_mut();
        let is_given = |given: &HeaderValue| {
            host.as_ref().is_ok_and(|host| host.as_bytes().eq_ignore_ascii_case(given.as_bytes()))
        };
        if let Ok(host) = &host
            && !headers.get(HOST).is_some_and(is_given)
        {
            headers.append(HOST, host.clone());
        }
    }
    if let Some(target) = request.uri().path_and_query() {
        *request.uri_mut() = Uri::from(target.clone());
    }
    let mut cookies = request.headers().get_all(COOKIE).iter();
    if let (Some(first), Some(_)) = (cookies.next(), cookies.next()) {
        let mut all = first.as_bytes().to_vec();
        for cookie in request.headers().get_all(COOKIE).iter().skip(1) {
            all.extend_from_slice(b"; ");
            all.extend_from_slice(cookie.as_bytes());
        }
        if let Ok(all) = HeaderValue::from_bytes(&all) {
            request.headers_mut().insert(COOKIE, all);
        }
    }
}

/// A request for reading whose body has bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HasBody;

/// Waits until it is known whether a request for reading has a body: in HTTP/2, an empty one may end
/// with a frame after the headers [rfc9113 §8.1]. The request then has the extension [`HasBody`], or a
/// body that has ended.
pub(crate) async fn await_body(request: &mut Request<Incoming>, time: Duration) {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if request.version() != Version::HTTP_2 || !reads {
        return;
    }
    let body = request.body_mut();
    let ends_empty = async {
        while !body.is_end_stream() {
            match body.frame().await {
                None => break,
                Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                Some(_) => return false,
            }
        }
        true
    };
    if !tokio::time::timeout(time, ends_empty).await.unwrap_or(false) {
        request.extensions_mut().insert(HasBody);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)]) -> Request<()> {
        let mut builder =
            Request::builder().version(Version::HTTP_2).uri("https://example.org:1/a?b");
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        let mut request = builder.body(()).unwrap();
        to_origin_form(&mut request);
        request
    }

    fn values(request: &Request<()>, name: http::HeaderName) -> Vec<&str> {
        request.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }

    #[test]
    fn the_host_is_a_field_and_the_address_is_a_path() {
        let plain = request(&[]);
        assert_eq!(plain.uri(), "/a?b");
        assert_eq!(values(&plain, HOST), ["example.org:1"]);
        assert_eq!(values(&request(&[("host", "EXAMPLE.org:1")]), HOST), ["EXAMPLE.org:1"]);
        assert_eq!(values(&request(&[("host", "other")]), HOST), ["other", "example.org:1"]);
    }

    #[test]
    fn cookies_in_several_fields_are_joined() {
        let several = request(&[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")]);
        assert_eq!(values(&several, COOKIE), ["a=1; b=2; c=3"]);
        assert_eq!(values(&request(&[("cookie", "a=1")]), COOKIE), ["a=1"]);
    }
}
