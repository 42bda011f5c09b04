//! Properties of every package: for fuzzing and for the tests of its seeds.

use super::read_manifest;
use crate::plan::manifest::Placed;
use crate::request::diagnostics::Diagnostics;
use crate::request::package::archive::{Package, SMALL_BYTES};
use crate::request::package::listing::Packaged;
use std::fs::File;
use std::io::{Read as _, Write as _};

/// Maximum number of members that are read from a package.
const MEMBERS_MAX: usize = 64;

/// Opens any bytes as a package, reads its manifest and the members this names. Nothing panics, a
/// member is never more than the directory states, and read at once or piece by piece it is the
/// same.
///
/// # Panics
/// When that is not so.
pub fn check(bytes: &[u8]) {
    let Some(mut file) = memory_file() else { return };
    if file.write_all(bytes).is_err() {
        return;
    }
    let Ok(package) = Package::open(file, &|| Ok(())) else { return };
    for packaged in [Packaged::Snapshot, Packaged::Changes] {
        let mut uris = Vec::new();
        let diagnostics = Diagnostics::default();
        let manifest = read_manifest(
            &package,
            "http://example.org/p.zip",
            packaged,
            &diagnostics,
            &mut |_, listed| {
                if uris.len() < MEMBERS_MAX {
                    uris.push(listed.uri.to_owned());
                }
                Ok(())
            },
        );
        let Ok(manifest) = manifest else { continue };
        for uri in &uris {
            for Placed { number, .. } in manifest.members_for(uri) {
                check_member(&package, number);
            }
        }
    }
}

fn check_member(package: &Package, number: u32) {
    let member = package.member(number);
    let mut streamed = Vec::new();
    let read = package.reader(member).ok().and_then(|reader| {
        // Some more than is right would show.
        reader.take(SMALL_BYTES + 2).read_to_end(&mut streamed).ok()
    });
    if !member.is_small() {
        return;
    }
    let (mut into, mut block) = (b"before".to_vec(), Vec::new());
    match package.read_into(member, &mut into, &mut block) {
        Ok(range) => {
            assert_eq!((range.end - range.start) as u64, member.length);
            assert_eq!(read.map(|_| streamed.as_slice()), Some(&into[range]));
            assert!(into.starts_with(b"before"));
        }
        Err(_) => assert_eq!(read, None, "one way refuses what the other reads"),
    }
}

/// A file in memory; `None` if the system does not support such files.
fn memory_file() -> Option<File> {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::memfd_create(c"package", rustix::fs::MemfdFlags::CLOEXEC).ok().map(File::from)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_testkit::zip::Zip;
    use proptest::prelude::*;

    fn whole() -> Vec<u8> {
        let manifest = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
             xmlns:rs='http://www.openarchives.org/rs/terms/'><rs:md capability='resourcedump-manifest' at='2026'/>\
             <url><loc>http://example.org/a</loc><rs:md path='/a'/></url>\
             <url><loc>http://example.org/b</loc><rs:md path='/b'/></url></urlset>";
        let mut zip = Zip::new();
        zip.add("a", b"hello").deflated("b", &[b'x'; 500]).add("manifest.xml", manifest.as_bytes());
        zip.finish()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn no_change_of_a_package_breaks_what_is_promised(at in 0_usize..2_000, with: u8, cut in 0_usize..2_000, more: Vec<u8>) {
            let mut bytes = whole();
            let length = bytes.len();
            bytes[at % length] = with;
            check(&bytes);
            bytes.truncate(cut % length);
            bytes.extend_from_slice(&more);
            check(&bytes);
            check(&more);
        }
    }
}
