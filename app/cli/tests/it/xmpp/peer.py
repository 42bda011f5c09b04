"""A client of XMPP by slixmpp. `read` prints the items of a node, `write` publishes the lines of its input."""

import asyncio
import sys
import xml.etree.ElementTree as ET

import slixmpp

act, jid, password, port, authority, service, node = sys.argv[1:]
PUBSUB = "http://jabber.org/protocol/pubsub"
EVENT = PUBSUB + "#event"


class Peer(slixmpp.ClientXMPP):
    def __init__(self):
        super().__init__(jid, password)
        self.ca_certs = authority
        self.number = 0
        self.answers = {}
        self.add_event_handler("session_start", self.start)
        for kind in ("message", "iq"):
            self.register_handler(
                slixmpp.xmlstream.handler.Callback(
                    kind, slixmpp.xmlstream.matcher.MatchXPath("{jabber:client}" + kind), getattr(self, "got_" + kind)
                )
            )

    def got_message(self, message):
        # The stanza's own text loses attributes with a namespace; its tree has them.
        for item in message.xml.iter("{%s}item" % EVENT):
            for payload in item:
                attributes = " ".join("%s=%s" % pair for pair in payload.attrib.items())
                text = " ".join((one.text or "") + " ".join(one.attrib.values()) for one in payload.iter())
                print(item.get("id"), payload.tag, attributes, text, flush=True)

    def got_iq(self, answer):
        waiting = self.answers.pop(answer["id"], None)
        if waiting:
            waiting.set_result(answer["type"])

    async def ask(self, request):
        self.number += 1
        name = "peer-%d" % self.number
        self.answers[name] = asyncio.get_running_loop().create_future()
        self.send_raw('<iq type="set" to="%s" id="%s"><pubsub xmlns="%s">%s</pubsub></iq>' % (service, name, PUBSUB, request))
        kind = await asyncio.wait_for(self.answers[name], 20)
        if kind != "result":
            raise SystemExit(kind)

    async def start(self, _):
        if act == "read":
            await self.ask('<subscribe node="%s" jid="%s"/>' % (node, jid))
            self.send_presence()
            await self["xep_0199"].ping()
            print("ready", flush=True)
            return
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            name, payload = line.strip().split(" ", 1)
            await self.ask('<publish node="%s"><item id="%s">%s</item></publish>' % (node, name, payload))


async def main():
    peer = Peer()
    peer.register_plugin("xep_0199")
    connected = peer.connect("127.0.0.1", int(port))
    if asyncio.iscoroutine(connected):
        await connected
    await asyncio.sleep(120)


asyncio.run(main())
