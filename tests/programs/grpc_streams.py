"""gRPC client (Debian's grpcio) of grpc_streams.go that keeps one stream of each kind going, each on a connection of its
own; prints in JSON what came of each.

Arguments: host, port of the router, file with the CA, number of messages, messages a second.
"""

import json
import sys
import threading
import time

import grpc


def paced(prefix, count, rate):
    begun = time.monotonic()
    for number in range(count):
        time.sleep(max(0, begun + number / rate - time.monotonic()))
        yield b"%s %d" % (prefix, number)


def expect(messages, expected):
    for number, message in enumerate(messages):
        if message != b"%s %d" % (expected, number):
            raise ValueError("%r as number %d" % (message, number))
        yield message


def chat(channel, count, rate, patience):
    call = channel.stream_stream("/stories.Streams/Chat")(paced(b"word", count, rate), timeout=patience)
    return sum(1 for _ in expect(call, b"word"))


def download(channel, count, rate, patience):
    call = channel.unary_stream("/stories.Streams/Download")(b"%d %d" % (count, rate), timeout=patience)
    return sum(1 for _ in expect(call, b"tick"))


def upload(channel, count, rate, patience):
    return int(channel.stream_unary("/stories.Streams/Upload")(paced(b"part", count, rate), timeout=patience))


def main():
    host, port, ca, count, rate = sys.argv[1:]
    count, rate = int(count), int(rate)
    # Without a pool of their own, channels of one process to the same address share a connection.
    options = [("grpc.ssl_target_name_override", host), ("grpc.default_authority", host),
               ("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
    credentials = grpc.ssl_channel_credentials(open(ca, "rb").read())
    seen = {}

    def keep(name, work):
        with grpc.secure_channel("ipv4:127.0.0.1:" + port, credentials, options) as channel:
            try:
                seen[name] = "%d messages" % work(channel, count, rate, count / rate + 60)
            except grpc.RpcError as failed:
                seen[name] = "%s: %s" % (failed.code().name, failed.details())

    kinds = {"Chat": chat, "Download": download, "Upload": upload}
    threads = [threading.Thread(target=keep, args=kind) for kind in kinds.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(seen))


main()
