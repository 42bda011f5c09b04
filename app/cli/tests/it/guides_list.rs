/// One test for each guide.
macro_rules! guides {
    ($($test:ident: $path:literal, $programs:expr, $names:expr, $stages:expr;)*) => {
        const GUIDES: &[Guide] = &[$(Guide { path: $path, programs: $programs, names: $names, stages: $stages }),*];
        $(#[test]
        fn $test() {
            GUIDES.iter().find(|guide| guide.path == $path).unwrap().check();
        })*
    };
}

/// A folder of files, `papers`, `FOLDER` and `/srv/papers`, to be published.
const FOLDERS: &str = "files papers; files FOLDER; files srv/papers";
/// A Source of files at port 8180.
const SOURCE: &str = "papers";
/// A Source of entities at port 8190.
const ENTITIES: &str = "authorities --versions all";
/// Servers of both.
const BOTH: &str = "papers; authorities --versions all";
/// A server of files at the default port.
const LOCAL: &str = "files papers; change=papers/5.txt; serve :8080 papers --debounce 30ms --api-write";
/// A server with a target that is behind, since nobody listens at its address, and a token of an administrator.
const TARGET: &str = r#"files papers; callback=http://127.0.0.1:9/callback
printf 'data = "%s"\n[hub]\nprivate_callbacks = true\ntrusted_callbacks = ["%s"]\n[notify]\ndebounce = "30ms"\n[[set]]\nname = "papers"\nfolder = "%s/papers"\n' "$data" "$callback" "$HOME" > etc/abreast.toml
abreast token create --name admin --scope admin --data "$data" > admin.token
serve :8080 --config etc/abreast.toml
curl -sf http://127.0.0.1:8080/papers/v0.1/subscribe --data-urlencode callbackURI=$callback
export ABREAST_SERVER=http://127.0.0.1:8080/ ABREAST_TOKEN=$(cat admin.token)
is_trusted() { abreast hub targets --json | grep -q callback; }
until_so is_trusted; echo more > papers/more.txt; changed :8080 papers 1
is_behind() { abreast hub targets --behind --json | grep -q callback; }
until_so is_behind"#;
/// A configuration of two jobs and two sets.
const JOBS: &str = r#"papers; mkdir -p srv/old srv/papers srv/copies
cat > etc/abreast.toml <<END
data = "$data"
[[set]]
name = "papers"
folder = "$HOME/srv/papers"
[[mirror]]
name = "papers"
url = "http://127.0.0.1:8180/"
folder = "$HOME/srv/copies/papers"
END
abreast sync --config etc/abreast.toml --all"#;
/// A store with two sets.
const STORE: &str = r#"files srv/papers
cat > etc/abreast.toml <<END
data = "$data"
[[set]]
name = "papers"
folder = "$HOME/srv/papers"
END
echo '{"uri": "https://example.org/1"}' | abreast import old-papers --data "$data"
papers; abreast sync http://127.0.0.1:8180/ copy
serve :8080 srv/papers --data "$data"; kill $!; wait $! || true"#;

/// The same store, after the set's name was changed in the configuration.
const RENAMED: &str = r#"files srv/papers
printf 'data = "%s"\n[[set]]\nname = "articles"\nfolder = "%s/srv/papers"\n' "$data" "$HOME" > etc/abreast.toml
echo '{"uri": "https://example.org/1"}' | abreast import old-papers --data "$data"
serve :8080 srv/papers --data "$data"; kill $!; wait $! || true"#;

guides! {
    guide_administration_works: "docs/administration.md", &[], &[], &[];
    guide_api_works: "docs/api.md", &[],
        // A running server applies new tokens within a second.
        &[("curl -H \"Authorization", "sleep 1.5; curl -H \"Authorization")],
        &[("abreast serve", "files papers; echo map > a.pdf"),
          ("(umask", r#"serve :8080 --origin records --name records --data "$data" --api-write"#),
          ("curl -H 'Idem", r#"serve :8080 --origin records --name records --data "$data" --api-write; echo '{"uri": "https://example.org/1"}' > records.ndjson"#),
          ("after=0", "files papers; serve :8080 papers; echo new > papers/new.txt; export SERVER=http://127.0.0.1:8080; program process 'jq -c .changes[0] $1'"),
          ("abreast import", r#"papers; echo '{"uri": "https://example.org/1"}' > records.ndjson; mkdir store other
printf 'data = "%s"\n[[set]]\nname = "records"\norigin = "records"\n' "$HOME/other" > etc/abreast.toml
curl -s http://127.0.0.1:8180/papers/resourcelist.xml > sitemap.xml
(umask 077; abreast token create --name loader --scope write --data "$data" > loader.token)
serve :8080 --origin records --name records --data "$data" --api-write"#),
          ("abreast log", r#"mkdir store; echo '{"uri": "https://example.org/0"}' | abreast import papers --data store
seq 1300 | jq -c '{uri: "https://example.org/\(.)"}' | abreast import papers --data store; cp -r store store2; serve :8080 --origin records --name papers --data store2"#)];
    guide_deploying_works: "docs/deploying.md", &[], &[], &[("", SOURCE)];
    guide_dumps_works: "docs/dumps.md", &[], &[("2026-01-31T12:00:00Z", "'\"$since\"'")],
        &[("abreast serve", FOLDERS),
          ("", "papers --dumps on-demand --change-dumps; since=$(date -u +%FT%T.%6NZ); for n in $(seq 1300); do echo $n > originals/n$n.txt; done; changed :8180 papers 1250")];
    guide_emm_works: "docs/emm.md", &[],
        &[("https://media.example.org/iiif/activity/all-changes", "http://127.0.0.1:8180/papers/iiif"),
          ("https://linked.art/ns/v1/linked-art.json", "http://127.0.0.1:8180/papers/r/context.json"),
          ("https://lux.example.org/feed", "http://127.0.0.1:8190/authorities/emm/1.0")],
        &[("abreast serve", "entities authorities"),
          ("abreast sync http://127", "entities people; serve :8080 people --origin rdf --name authorities --debounce 30ms
abreast sync http://127.0.0.1:8080/authorities/emm/1.0 labels:./labels.csv --state ./state --uris-from used.txt
echo '<https://id.example.org/n2> <http://purl.org/dc/terms/isReplacedBy> <https://id.example.org/n1> .' >> people/n2.ttl; changed :8080 authorities 3"),
          ("curl -o linked-art", "mkdir originals; echo '{\"@context\": {}}' > originals/context.json; papers; authorities"), ("", BOTH)];
    guide_filters_works: "docs/filters.md", &[SQLITE, OPENSSL],
        &[("https://example.org/papers/", "http://127.0.0.1:8180/papers/"), ("HOST:443", "127.0.0.1:8443")],
        &[("abreast sync URL", "papers; printf -- '+ *.txt\\n- *\\n' > rules"),
          ("sqlite3", "authorities; sqlite3 catalogue.db \"CREATE TABLE record (authority); INSERT INTO record VALUES ('https://id.example.org/n1')\""),
          ("abreast sync --config", JOBS),
          ("openssl s_client", "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem
openssl s_server -www -accept 127.0.0.1:8443 -key key.pem -cert cert.pem & until_so openssl s_client -connect 127.0.0.1:8443 < /dev/null"),
          ("openssl genpkey", "papers; files srv/papers"), ("", SOURCE)];
    guide_installing_is_listed: "docs/installing.md", &[], &[], &[];
    guide_maintenance_works: "docs/maintenance.md", &[],
        &[("papers/20260131T120000.000000Z", "papers/$(ls $HOME/mnt/backups/papers | head -n 1)")],
        &[("systemctl", "program systemctl true; files srv/papers; serve :8080 srv/papers --data \"$data\"; kill $!; wait $! || true; abreast backup \"$data\" var/backups/abreast"),
          ("abreast set", RENAMED), ("", STORE)];
    guide_mirroring_works: "docs/mirroring.md", &[],
        &[(" JOB", " papers"), ("--set NAME", "--set papers"), ("--callback-listen 0.0.0.0:8080", "--callback-listen 127.0.0.1:0")],
        &[("abreast sync NEW", "files originals; serve :8080 originals --name papers; abreast sync http://127.0.0.1:8080/ FOLDER; kill $!; wait $! || true; serve :8180 originals --name papers --base-url http://localhost:8180/"),
          ("abreast sync https", "papers; program index 'cat > indexed'; cp \"$BIN/index\" .; change=originals/1.txt"),
          ("abreast sync URL FOLDER --dumps", "papers --dumps on-demand"), ("", JOBS)];
    guide_observing_works: "docs/observing.md", &[], &[], &[("", JOBS)];
    guide_publishing_works: "docs/publishing.md", &[], &[], &[("", FOLDERS)];
    guide_push_works: "docs/push.md", &[OPENSSL], &[(" 17", " 1")],
        &[("abreast serve", "files papers; change=papers/5.txt"),
          ("export ABREAST_SERVER", TARGET),
          ("", LOCAL)];
    guide_python_is_listed: "docs/python.md", &[], &[], &[];
    guide_rdf_works: "docs/rdf.md", &[],
        &[("https://schema.org/docs/jsonldcontext.json", "http://127.0.0.1:8180/papers/r/context.json"),
          ("-o iiif.json http://iiif.io/api/presentation/3/context.json", "-o iiif.json http://127.0.0.1:8180/papers/r/context.json"),
          ("-o anno.json http://www.w3.org/ns/anno.jsonld", "-o anno.json http://127.0.0.1:8180/papers/r/context.json"),
          ("--data DIR", "--data $HOME/var/lib/abreast")],
        &[("abreast serve FOLDER", "entities FOLDER"),
          ("curl -o", r#"mkdir originals; echo '{"@context": {"name": "http://schema.org/name"}}' > originals/context.json; papers
echo '{"@context": "https://schema.org/", "@id": "https://example.org/1", "name": "One"}' > things.jsonld
echo '{"@context": ["http://iiif.io/api/presentation/3/context.json", "http://www.w3.org/ns/anno.jsonld"], "@id": "https://example.org/1", "name": "One"}' > manifests.jsonld"#),
          ("abreast import authorities dump", "entities people; cat people/n2.ttl | sed 's/ a / <http:\\/\\/www.w3.org\\/1999\\/02\\/22-rdf-syntax-ns#type> /; s/ ;.*/ ./' | gzip > dump.nt.gz"),
          ("abreast import authorities --delta", r#"entities people; abreast import authorities people/n1.ttl people/n2.ttl --data "$data"
echo 'A <https://id.example.org/n1> <https://example.org/p> "1" .' > today.rdfp
echo '<https://id.example.org/n1> <https://example.org/p> "1" .' > gone.nt; cp people/n2.ttl new.ttl"#),
          ("curl -X PUT", r#"echo '<http://id.example.org/ada> <https://example.org/p> "1" .' > ada.ttl; serve :8080 --origin rdf --name authorities --data "$data" --api-write"#)];
    guide_reloading_works: "docs/reloading.md", &[], &[], &[("", "program systemctl true; mkdir srv/papers; printf '[[set]]\\nfolder = \"%s/srv/papers\"\\n' \"$HOME\" > etc/abreast.toml")];
    guide_resourcesync_0_1_works: "docs/resourcesync-0.1.md", &[],
        &[("https://example.org/papers/", "http://127.0.0.1:8180/papers/"),
          ("https://example.org/changesets/most_recent.xml", "http://127.0.0.1:8180/papers/v0.1/changeset.xml"),
          ("https://example.org/dump/dump.zip", "http://127.0.0.1:8180/papers/v0.1/dump.zip")],
        &[("", "papers --dumps 1d; until curl -sf http://127.0.0.1:8180/papers/v0.1/dump.zip -o dump.zip; do sleep 0.1; done; echo new > originals/new.txt; changed :8180 papers 1")];
    guide_sdshare_works: "docs/sdshare.md", &[],
        &[("https://example.org/sdshare", "http://127.0.0.1:8190/sdshare"), ("--set ships", "--set authorities"),
          ("https://example.org/ships/", "http://127.0.0.1:8190/authorities/"),
          ("https://receiver.example.org/", "http://127.0.0.1:8080/"), ("https://example.org/api", "http://127.0.0.1:8080/api")],
        &[("abreast serve ./papers", FOLDERS),
          ("abreast serve", r#"TOKEN=$(abreast token create --name push --scope write --data "$data"); echo '<http://id.example.org/ada> <https://example.org/p> "1" .' > ada.ttl"#),
          ("abreast sync https://authorities.example.org/sdshare push", "authorities; mkdir receiver; serve :8080 --origin rdf --name authorities --data receiver --api-write"),
          ("", ENTITIES)];
    guide_simulation_is_listed: "docs/simulation.md", &[], &[], &[];
    guide_sinks_works: "docs/sinks.md", &[MOTO, SQLITE],
        &[("http://localhost:3030/ds/update", "http://127.0.0.1:7878/update"), ("http://localhost:8081/push", "http://127.0.0.1:7878/push"), ("http://localhost:7878/store", "http://127.0.0.1:7878/data"),
          ("https://files.example.org/", "http://127.0.0.1:8190/")],
        &[("abreast sync URL ./papers ", r#"entities people; serve :8180 people --origin rdf --name papers --base-url http://127.0.0.1:8180/
moto_server -H 127.0.0.1 -p 0 2> moto & until_so grep -q 'Running on http' moto
export AWS_ENDPOINT=$(grep -o 'http://[0-9.:]*' moto) AWS_ALLOW_HTTP=true AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1
until_so command curl -sf -X PUT -H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0' $AWS_ENDPOINT/bucket
mkdir published; printf '[[set]]\nname = "papers"\nfolder = "published"\n' > abreast.toml"#),
          ("export AWS", r"papers; moto_server -H 127.0.0.1 -p 0 2> moto & until_so grep -q 'Running on http' moto
export AWS_ENDPOINT=$(grep -o 'http://[0-9.:]*' moto) AWS_ALLOW_HTTP=true
until_so command curl -sf -X PUT -H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0' $AWS_ENDPOINT/bucket"),
          ("abreast sync URL -", "papers; program my-indexer cat; change=originals/1.txt"),
          ("abreast sync https://authorities.example.org/ nquads", "authorities; program riot 'wc -l'"),
          ("abreast sync https://original", "papers"),
          ("", BOTH)];
    guide_static_sites_works: "docs/static-sites.md", &[PYTHON], &[("./preview 8000", "./preview 0")],
        &[("abreast build ./papers --out ./site", FOLDERS), ("abreast build /var/www", "files var/www/html/data"),
          ("abreast build", FOLDERS), ("", SOURCE)];
    guide_validating_works: "docs/validating.md", &[],
        &[("https://papers.example.org/data/", "http://127.0.0.1:8180/papers/"), ("https://papers.example.org/sdshare", "http://127.0.0.1:8190/sdshare")],
        &[("abreast validate resourcelist.xml", r#"papers --dumps on-demand; for list in resourcelist changelist; do curl -s http://127.0.0.1:8180/papers/$list.xml > $list.xml; done
gzip changelist.xml; until_so bash -c "curl -s http://127.0.0.1:8180/papers/resourcedump.xml | grep -o 'http://[^<]*.zip' > address"; curl -s "$(cat address)" > package.zip"#),
          ("abreast validate https://id.example.org", "authorities --versions all; curl -s http://127.0.0.1:8190/authorities/emm/1.0/page/1 > page.json; curl -s http://127.0.0.1:8190/authorities/emm/0.1/activity/1/instrument/1.rdfp > patch.rdfp"),
          ("abreast validate https://papers.example.org/sdshare", "authorities; curl -s 'http://127.0.0.1:8190/authorities/sdshare/fragments' > fragments.atom"), ("", BOTH)];
    guide_versions_works: "docs/versions.md", &[], &[],
        &[("abreast serve", FOLDERS), ("", "files papers; echo a > papers/a.txt; serve :8080 papers --versions 10")];
}
