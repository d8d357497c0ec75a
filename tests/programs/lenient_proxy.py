"""HTTP/1.1 proxy as none should be: it takes the length of a message as it likes, hands the message on as it came, and has
one connection for each endpoint, which all clients share.

Arguments: port; "length" (only Content-Length counts) or "chunks" (anything that looks like chunked is); then HOST=PORT of
each endpoint.
"""

import re
import socket
import socketserver
import sys
import threading

port, reading = int(sys.argv[1]), sys.argv[2]


def read_head(file):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = file.readline()
        if not line:
            raise EOFError
        head += line
    return head


def length(head):
    found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    return int(found[1]) if found else 0


def read_request(file):
    head = read_head(file)
    if reading == "length" or not re.search(rb"encoding[^\n]*\n?[^\n]*chunk", head, re.I):
        return head, file.read(length(head))
    chunks = b""
    while True:
        line = file.readline()
        size = int(line, 16)
        chunks += line + file.read(size) + file.readline()
        if size == 0:
            return head, chunks


class Endpoint:
    def __init__(self, port):
        self.port = int(port)
        self.turn = threading.Lock()
        self.file = None

    def ask(self, message):
        with self.turn:
            try:
                if self.file is None:
                    connection = socket.create_connection(("127.0.0.1", self.port))
                    connection.settimeout(0.1)
                    self.file = connection.makefile("rwb")
                self.file.write(message)
                self.file.flush()
                head = read_head(self.file)
                return head + self.file.read(length(head))
            except (EOFError, OSError):
                # Whoever waits longer waits for nothing; the next one begins anew.
                self.file = None
                raise


endpoints = {host: Endpoint(port) for host, port in (pair.split("=") for pair in sys.argv[3:])}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            while True:
                head, body = read_request(self.rfile)
                host = re.search(rb"\nhost: *([^\r\n]*)", head, re.I)[1].decode("latin-1")
                self.wfile.write(endpoints[host].ask(head + body))
                if b"\nconnection: close" in head.lower():
                    return
        except (EOFError, ValueError, TypeError, KeyError, OSError):
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


with Server(("127.0.0.1", port), Handler) as server:
    print("ready")
    server.serve_forever()
