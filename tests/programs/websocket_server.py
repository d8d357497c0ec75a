"""WebSocket server (Debian's websockets): says first what it saw of the handshake, then sends back what it gets.

Arguments: port [certificate key]. The text "close CODE REASON" makes it close the connection so.
"""

import asyncio
import json
import ssl
import sys

import websockets


async def serve(connection):
    headers = connection.request_headers
    await connection.send(json.dumps({
        "path": connection.path,
        "host": headers["Host"],
        "proto": headers.get("X-Forwarded-Proto"),
        "subprotocol": connection.subprotocol,
        "tls": connection.secure,
    }))
    async for message in connection:
        if isinstance(message, str) and message.startswith("close "):
            _, code, reason = message.split(" ", 2)
            await connection.close(int(code), reason)
        else:
            await connection.send(message)


async def main():
    port, *files = sys.argv[1:]
    tls = None
    if files:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*files)
    async with websockets.serve(serve, "127.0.0.1", int(port), ssl=tls, max_size=None, ping_interval=None,
                                subprotocols=["stories"]):
        print("ready")
        await asyncio.Future()


asyncio.run(main())
