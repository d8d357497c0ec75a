"""Both ends of a WebSocket that do not wait: the server's first message is in one piece with its answer to the
handshake, and the client's first message in one piece with its request. The protocol is Debian's websockets'.

Arguments: "server" and a port; or "client", a URL and the port of the router. The client prints the messages that it
gets, in JSON.
"""

import json
import socket
import sys

from websockets.client import ClientConnection
from websockets.connection import State
from websockets.frames import Frame, Opcode
from websockets.server import ServerConnection
from websockets.uri import parse_uri


def server(port):
    listener = socket.create_server(("127.0.0.1", port))
    print("ready")
    while True:
        stream, _ = listener.accept()
        stream.settimeout(20)
        connection = ServerConnection()
        answered = False
        while connection.state is not State.CLOSED:
            received = stream.recv(65536)
            if not received:
                break
            connection.receive_data(received)
            for event in connection.events_received():
                if not answered:
                    connection.send_response(connection.accept(event))
                    connection.send_text(b"first word of the server")
                    answered = True
                elif event.opcode is Opcode.TEXT:
                    connection.send_text(b"back: " + event.data)
            stream.sendall(b"".join(connection.data_to_send()))
        stream.close()


def client(url, port):
    stream = socket.create_connection(("127.0.0.1", port), 20)
    connection = ClientConnection(parse_uri(url))
    connection.send_request(connection.connect())
    early = Frame(Opcode.TEXT, b"first word of the client").serialize(mask=True)
    stream.sendall(b"".join(connection.data_to_send()) + early)
    messages = []
    handshake = None
    while len(messages) < 2:
        received = stream.recv(65536)
        if not received:
            break
        connection.receive_data(received)
        for event in connection.events_received():
            if handshake is None:
                handshake = event.status_code
            else:
                messages.append(event.data.decode())
    print(json.dumps({"status": handshake, "messages": sorted(messages)}))


if sys.argv[1] == "server":
    server(int(sys.argv[2]))
else:
    client(sys.argv[2], int(sys.argv[3]))
