"""HTTP/1.1 server (Debian's aiohttp).

Arguments: port, folder of what is served under /file/ [certificate key].

PUT /sum      answers with the length and the SHA-256 of the body, in JSON
PUT /refuse/N as /sum for clients that expect no 100 (Continue); others are refused with status N before that
GET /events   server-sent events: one at once, one for every POST /next
GET /open     how many clients listen to events
GET /name     its own port
GET /fields   the request's fields as they came, in JSON: a list of pairs
GET /after/N  fails (503) N times for each Host, then answers which time it is
GET /held     answers when POST /release comes
GET /waiting  how many requests have been held
"""

import asyncio
import collections
import hashlib
import ssl
import sys

from aiohttp import web

listening = []


async def digest(request):
    hash = hashlib.sha256()
    length = 0
    async for part in request.content.iter_chunked(1 << 16):
        hash.update(part)
        length += len(part)
    fields = {"bytes": length, "sha256": hash.hexdigest(), "encoding": request.headers.get("Transfer-Encoding")}
    return web.json_response(fields)


async def refuse(request):
    raise {"417": web.HTTPExpectationFailed(), "413": web.HTTPRequestEntityTooLarge(0, 1)}[request.match_info["status"]]


async def events(request):
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    more = asyncio.Event()
    listener = (request, more)
    listening.append(listener)
    try:
        for number in range(1, 1000):
            await response.write(b"id: %d\ndata: event %d\n\n" % (number, number))
            await more.wait()
            more.clear()
    finally:
        listening.remove(listener)
    return response


def connected():
    return [more for request, more in listening if request.transport is not None and not request.transport.is_closing()]


async def following(request):
    for more in connected():
        more.set()
    return web.Response()


async def count(request):
    return web.json_response(len(connected()))


async def name(request):
    return web.Response(text=sys.argv[1])


async def fields(request):
    return web.json_response([[name.decode(), value.decode()] for name, value in request.raw_headers])


times = collections.Counter()


async def after(request):
    times[request.host] += 1
    if times[request.host] <= int(request.match_info["count"]):
        raise web.HTTPServiceUnavailable()
    return web.Response(text=str(times[request.host]))


held = 0
released = asyncio.Event()


async def hold(request):
    global held
    held += 1
    await released.wait()
    return web.Response(text="released")


async def waiting(request):
    return web.json_response(held)


async def release(request):
    released.set()
    return web.Response()


async def main():
    port, folder, *files = sys.argv[1:]
    app = web.Application(client_max_size=0)
    app.router.add_put("/sum", digest)
    app.router.add_put("/refuse/{status}", digest, expect_handler=refuse)
    app.router.add_get("/events", events)
    app.router.add_post("/next", following)
    app.router.add_get("/open", count)
    app.router.add_get("/name", name)
    app.router.add_post("/name", name)
    app.router.add_get("/fields", fields)
    app.router.add_get("/after/{count}", after)
    app.router.add_get("/held", hold)
    app.router.add_get("/waiting", waiting)
    app.router.add_post("/release", release)
    app.router.add_static("/file", folder)
    tls = None
    if files:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*files)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(port), ssl_context=tls).start()
    print("ready")
    await asyncio.Future()


asyncio.run(main())
