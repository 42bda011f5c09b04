"""Moto whose reads and conditional PUTs are atomic, as they are in S3: moto checks, writes and reads in several steps.
Signed URLs expire, which moto does not check."""

import sys
import threading
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

APP = DomainDispatcherApplication(create_backend_app)
LOCK = threading.Lock()


def is_expired(query):
    """Whether a request has a signed URL whose time is over."""
    if "X-Amz-Expires" not in query:
        return False
    signed = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    return datetime.now(timezone.utc) > signed + timedelta(seconds=int(query["X-Amz-Expires"][0]))


def serve(environ, start_response):
    """Answers a request; one read or conditional PUT at a time."""
    if is_expired(parse_qs(environ.get("QUERY_STRING", ""))):
        start_response("403 Forbidden", [("Content-Length", "0")])
        return []
    is_conditional = "HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ
    if environ["REQUEST_METHOD"] == "GET" or is_conditional:
        with LOCK:
            return list(APP(environ, start_response))
    return APP(environ, start_response)


run_simple(sys.argv[1], int(sys.argv[2]), serve, threaded=True)
