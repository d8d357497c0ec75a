"""HTTP/1.1 server (Debian's aiohttp) that prints every request as HOST METHOD TARGET, and answers with its name and the
same.

Arguments: name, port.
"""

import asyncio
import sys

from aiohttp import web

name, port = sys.argv[1], int(sys.argv[2])


async def answer(request):
    await request.read()
    seen = "\t".join([request.headers.get("Host", "-"), request.method, request.raw_path])
    print(seen)
    return web.Response(text=f"[{name}\t{seen}]")


app = web.Application(client_max_size=1 << 20)
app.router.add_route("*", "/{rest:.*}", answer)


async def serve():
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("ready")
    await asyncio.Future()


asyncio.run(serve())
