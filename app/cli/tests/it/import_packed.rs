//! Records in packed files are unpacked as they are read.

use crate::world::abreast;
use abreast_testkit::run;
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write as _;

#[test]
fn packed_records_are_read_and_cut_files_are_named() {
    let place = tempfile::tempdir().unwrap();
    let texts = [
        ("ndjson", "{\"uri\":\"https://a.example/1\",\"length\":1}\n"),
        ("csv", "uri,change,length\nhttps://a.example/1,created,1\n"),
        (
            "xml",
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>https://a.example/1</loc></url></urlset>",
        ),
    ];
    fs::create_dir(place.path().join("data")).unwrap();
    for (ending, text) in texts {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        let packed = encoder.finish().unwrap();
        for (bytes, code, part) in
            [(&packed[..], 0, "1 new"), (&packed[..packed.len() - 9], 2, "truncated")]
        {
            let file = place.path().join(format!("records.{ending}.gz"));
            fs::write(&file, bytes).unwrap();
            let mut command = abreast();
            command.args(["import", "records", "--dry-run", "--data"]);
            let output = run(command.arg(place.path().join("data")).arg(&file));
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8_lossy(&printed);
            assert_eq!(output.status.code(), Some(code), "{ending}: {printed}");
            assert!(code == 0 || printed.contains(part), "{ending}: {printed}");
        }
    }
}
