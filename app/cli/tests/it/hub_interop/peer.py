"""Flask-WebSub as a subscriber, as a publisher and as a hub, at one address. Says its port, then what happens, a JSON
object a line."""

import json
import os
import sys

import flask_websub.subscriber
from celery import Celery
from flask import Flask, request
from flask_websub.hub import Hub, SQLite3HubStorage
from flask_websub.publisher import init_publisher, publisher
from flask_websub.subscriber import (
    SQLite3SubscriberStorage,
    SQLite3TempSubscriberStorage,
    Subscriber,
    discover,
)
from werkzeug.serving import make_server

place, hub_url = sys.argv[1:]
# Nobody listens to this machine talking to itself: secrets may be used without TLS.
flask_websub.subscriber.is_secure = lambda url: True
app = Flask(__name__)
app.config["PUBLISH_SUPPORTED"] = True


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


subscriber = Subscriber(
    SQLite3SubscriberStorage(os.path.join(place, "subscriptions.db")),
    SQLite3TempSubscriberStorage(os.path.join(place, "requests.db")),
)
app.register_blueprint(subscriber.build_blueprint(url_prefix="/callbacks"))
subscriber.add_listener(lambda topic, callback, body: say(event="told", topic=topic, id=callback, body=body.decode()))
subscriber.add_success_handler(lambda topic, callback, mode: say(event=mode, topic=topic, id=callback))
subscriber.add_error_handler(lambda topic, callback, reason: say(event="denied", topic=topic, id=callback))

# Its tasks run where they are asked for.
tasks = Celery("peer", broker="memory://")
tasks.conf.task_always_eager = True
hub = Hub(SQLite3HubStorage(os.path.join(place, "hub.db")), tasks, PUBLISH_SUPPORTED=True)
app.register_blueprint(hub.build_blueprint(url_prefix="/hub"))

init_publisher(app)
content = "nothing yet"


@app.route("/topic", methods=["GET"])
@publisher(hub_url=hub_url)
def topic():
    return content, 200, {"Content-Type": "text/plain; charset=utf-8"}


@app.route("/topic", methods=["PUT"])
def change():
    global content
    content = request.get_data(as_text=True)
    return ""


@app.route("/subscribe", methods=["POST"])
def subscribe():
    found = discover(request.form["url"])
    return subscriber.subscribe(secret=request.form.get("secret"), **found)


@app.route("/renew", methods=["POST"])
def renew():
    return subscriber.renew(request.form["id"])


@app.route("/unsubscribe", methods=["POST"])
def unsubscribe():
    subscriber.unsubscribe(request.form["id"])
    return ""


server = make_server("127.0.0.1", 0, app, threaded=True)
say(event="listening", port=server.server_port)
server.serve_forever()
