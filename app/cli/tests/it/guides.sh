# Functions for the stages of guides, and names of folders below the folder of the session.
mkdir -p var/lib/abreast var/backups etc/abreast srv mnt/backups
data=$PWD/var/lib/abreast

# until_so COMMAND...: waits until a command succeeds.
until_so() {
  local turns=0
  until "$@"; do
    [ $((turns += 1)) -lt 300 ] || { echo "never so: $*" >&2; exit 1; }
    sleep 0.05
  done
}

# Answers with any status: a server that listens, and has read its sets.
ready() { until_so is_listening "$1"; }

is_listening() { command curl -s "$1" > "$HOME/.ready" && ! grep -q 'is being read' "$HOME/.ready"; }

is_read() { command curl -sf "$1/readyz" > "$HOME/.ready" && ! grep -q 'is being read' "$HOME/.ready"; }

# serve :PORT ARGUMENT...: a server of the stage, once each of its sets is read.
serve() {
  local port=$1; shift
  sleep 0.1
  ABREAST_LISTEN=127.0.0.1$port abreast serve "$@" > "$HOME/.serve$port" 2>&1 &
  until_so is_read "http://127.0.0.1$port"
}

# files FOLDER: a few files.
files() { mkdir -p "$1"; for n in 1 2 3 4 5; do echo "file $n" > "$1/$n.txt"; done; echo map > "$1/a.pdf"; }

# entities FOLDER: two people in RDF.
entities() {
  mkdir -p "$1"
  local concept='a <http://www.w3.org/2004/02/skos/core#Concept> ; <http://www.w3.org/2004/02/skos/core#prefLabel>'
  echo "<https://id.example.org/n1> $concept \"Ada Lovelace\"@de, \"Ada Lovelace\"@en ." > "$1/n1.ttl"
  echo "<https://id.example.org/n2> $concept \"Byron, Ada\"@en ." > "$1/n2.ttl"
  printf 'https://id.example.org/n1\nhttps://id.example.org/n2\n' > used.txt
}

# papers ARGUMENT...: the server of a set of files.
papers() { files originals; serve :8180 originals --name papers --base-url http://127.0.0.1:8180/ --debounce 30ms "$@"; }

# authorities ARGUMENT...: the server of a set of entities.
authorities() { entities people; serve :8190 people --origin rdf --name authorities --base-url http://127.0.0.1:8190/ --debounce 30ms "$@"; }

# changed :PORT SET NUMBER: waits until the log of a set has so many changes.
changed() { until_so has_changed "$@"; }

has_changed() { [ "$(curl -sf "http://127.0.0.1$1/api/v1/sets/$2" | jq .head)" -ge "$3" ]; }

# program NAME COMMANDS: a program that the reader has.
program() { printf '#!/bin/sh\n%s\n' "$2" > "$BIN/$1"; chmod +x "$BIN/$1"; }

# endless COMMANDS: runs commands until they print that they run, and ends them. Files of $change change meanwhile.
endless() {
  : > "$HOME/.printed"
  ABREAST_LISTEN=127.0.0.1:0 bash -c "$1" > "$HOME/.printed" 2>&1 &
  local pid=$! status=0 turns=0
  until grep -qE 'listening on|progress: following|in sync|^data:|^\{|^[A-Za-z0-9]+ +http|Serving HTTP' "$HOME/.printed"; do
    if ! kill -0 $pid 2> "$HOME/.gone" || [ $((turns += 1)) -gt 150 ]; then
      echo "ended early, or printed nothing that shows its work: $1" >&2; cat "$HOME/.printed" >&2; exit 1
    fi
    case $1 in *sync*/\ -\ *) echo "$turns" > "$change" ;; *sync*) ;; *) [ -z "${change-}" ] || echo "$turns" > "$change" ;; esac
    sleep 0.1
  done
  cat "$HOME/.printed"
  kill $pid
  wait $pid || status=$?
  case $status in 0 | 130 | 143) ;; *) echo "ended with $status: $1" >&2; exit 1 ;; esac
}
