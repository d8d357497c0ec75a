"""WebSocket client (Debian's websockets) of websocket_server.py; prints in JSON what came of everything it tried.

Arguments: URL, port of the router, file with the CA.
"""

import asyncio
import hashlib
import json
import os
import ssl
import sys
from urllib.parse import urlsplit

import websockets

LARGE = 16 << 20


async def main():
    url, port, ca = sys.argv[1:]
    options = {"host": "127.0.0.1", "port": int(port), "max_size": None, "ping_interval": None, "open_timeout": 20}
    if url.startswith("wss:"):
        options["ssl"] = ssl.create_default_context(cafile=ca)
        options["server_hostname"] = urlsplit(url).hostname
    seen = {}

    async with websockets.connect(url, subprotocols=["stories"], **options) as connection:
        seen["greeting"] = json.loads(await connection.recv())
        await connection.send("zwölf")
        seen["text"] = await connection.recv()
        large = os.urandom(LARGE)
        await connection.send(large)
        back = await connection.recv()
        seen["large"] = hashlib.sha256(back).digest() == hashlib.sha256(large).digest()
        # In parts, each a frame of its own.
        await connection.send([large[:1], large[1:70_000], b"", large[70_000:200_000]])
        seen["fragments"] = await connection.recv() == large[:200_000]
        # A thousand under way at once.
        for number in range(1000):
            await connection.send(str(number))
        seen["in order"] = [int(await connection.recv()) for _ in range(1000)] == list(range(1000))
        await asyncio.wait_for(await connection.ping(b"there?"), 20)
        seen["pong"] = True
        await connection.close(4001, "enough")
        seen["client closed"] = [connection.close_code, connection.close_reason]

    async with websockets.connect(url, compression=None, **options) as connection:
        await connection.recv()
        await connection.send("close 4321 it is late")
        try:
            await connection.recv()
        except websockets.ConnectionClosed as error:
            seen["server closed"] = [error.rcvd.code, error.rcvd.reason]

    print(json.dumps(seen))


asyncio.run(main())
