//! Texts: counts and pieces for messages, web pages, robots.txt, JSON and gzip.

pub(crate) mod count;
pub(crate) mod gzip;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod nearest;
pub(crate) mod robots;
pub(crate) mod visible;
