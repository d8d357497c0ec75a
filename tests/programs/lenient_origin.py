"""HTTP/1.1 server that takes whatever looks like a request, however it ends its lines and whatever it says of its length:
what a careless one might make of a message that a router has let through. It keeps every connection open.

Arguments: name, port. It prints every request as HOST METHOD TARGET, and answers with its name and the same.
"""

import socketserver
import sys
import threading

name, port = sys.argv[1], int(sys.argv[2])
printing = threading.Lock()


class Handler(socketserver.StreamRequestHandler):
    def line(self):
        line = self.rfile.readline()
        if not line:
            raise EOFError
        return line.rstrip(b"\r\n")

    def read(self):
        first = self.line()
        while not first:
            first = self.line()
        words = (first.split() + [b"", b""])[:2]
        fields = {}
        while field := self.line():
            key, _, value = field.partition(b":")
            fields.setdefault(key.strip().lower(), value.strip())
        if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
            while size := int(self.line().split(b";")[0].strip() or b"0", 16):
                self.rfile.read(size)
                self.line()
            while self.line():
                pass
        elif length := fields.get(b"content-length"):
            self.rfile.read(int(length.split(b",")[0]))
        return [part.decode("latin-1") for part in (fields.get(b"host", b"-"), *words)]

    def handle(self):
        try:
            while True:
                seen = "\t".join(self.read())
                with printing:
                    print(seen)
                body = f"[{name}\t{seen}]".encode("latin-1")
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        except (EOFError, ValueError, OSError):
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


with Server(("127.0.0.1", port), Handler) as server:
    print("ready")
    server.serve_forever()
