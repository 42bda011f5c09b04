"""Moto whose reads and conditional PUTs are atomic, as they are in S3: moto checks, writes and reads in several steps."""

import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

APP = DomainDispatcherApplication(create_backend_app)
LOCK = threading.Lock()


def serve(environ, start_response):
    """Answers a request; one read or conditional PUT at a time."""
    is_conditional = "HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ
    if environ["REQUEST_METHOD"] == "GET" or is_conditional:
        with LOCK:
            return list(APP(environ, start_response))
    return APP(environ, start_response)


run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True)
