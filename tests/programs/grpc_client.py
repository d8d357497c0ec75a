"""gRPC client (Debian's grpcio) of grpc_server.py; prints in JSON what came of every call.

Arguments: host, port of the router, file with the CA, or - for clear text. With further ones, only what comes of some
calls: "status", of one; "each" and names of methods without streams, of each.
"""

import json
import queue
import sys

import grpc

PATIENCE = 20
LARGE = 8 << 20


class Calls:
    def __init__(self, channel):
        self.channel = channel

    def __getattr__(self, method):
        kinds = {"Upload": self.channel.stream_unary, "Download": self.channel.unary_stream,
                 "Chat": self.channel.stream_stream, "Half": self.channel.unary_stream}
        return kinds.get(method, self.channel.unary_unary)("/stories.Calls/" + method)


def error(call):
    try:
        call()
    except grpc.RpcError as failed:
        trailing = dict(failed.trailing_metadata() or ())
        return [failed.code().name, failed.details(), trailing.get("why")]
    return "no error"


def unary(calls, seen):
    answer, call = calls.Unary.with_call(b"abc", timeout=PATIENCE)
    trailing = dict(call.trailing_metadata())
    seen["unary"] = [answer.decode(), dict(call.initial_metadata()).get("first"), trailing.get("last")]
    seen["binary metadata"] = trailing.get("raw-bin") == bytes(range(256))
    large = bytes(range(256)) * (LARGE // 256)
    seen["large"] = calls.Unary(large, timeout=PATIENCE) == large[::-1]
    seen["empty"] = calls.Unary(b"", timeout=PATIENCE).decode()
    seen["saw"] = calls.Saw(b"", metadata=[("custom", "value")], timeout=PATIENCE).decode()


def streams(calls, seen):
    seen["upload"] = calls.Upload(iter([b"x" * 70_000] * 200), timeout=PATIENCE).decode()
    parts = list(calls.Download(b"300 40000", timeout=PATIENCE))
    seen["download"] = [len(parts), all(part == number.to_bytes(4, "big") * 10_000 for number, part in enumerate(parts))]

    # Each word is said after the answer to the last one: nothing may wait for more.
    words = queue.Queue()
    answers = calls.Chat(iter(words.get, None), timeout=PATIENCE)
    said = []
    for word in (b"one", b"two", b"three"):
        words.put(word)
        said.append(next(answers).decode())
    words.put(None)
    seen["chat"] = said + [word.decode() for word in answers]
    seen["chat's end"] = answers.code().name


def errors(calls, seen):
    seen["refused"] = error(lambda: calls.Refuse(b"", timeout=PATIENCE))
    seen["unknown method"] = error(lambda: calls.Nothing(b"", timeout=PATIENCE))[0]
    parts = []
    seen["half"] = error(lambda: parts.extend(calls.Half(b"", timeout=PATIENCE)))
    seen["half's parts"] = [part.decode() for part in parts]
    seen["deadline"] = error(lambda: calls.Wait(b"", timeout=0.5))[0]
    seen["deadline seen"] = calls.Cancellations(str(PATIENCE).encode(), timeout=PATIENCE).decode()
    call = calls.Wait.future(b"", timeout=PATIENCE)
    # It is under way when a later one on the same connection has been answered.
    calls.Unary(b"", timeout=PATIENCE)
    call.cancel()
    seen["cancel seen"] = calls.Cancellations(str(PATIENCE).encode(), timeout=PATIENCE).decode()


def many(calls, seen):
    pending = [calls.Unary.future(str(number).encode(), timeout=PATIENCE) for number in range(500)]
    seen["many"] = [call.result() for call in pending] == [str(number).encode()[::-1] for number in range(500)]


def main():
    host, port, ca, *only = sys.argv[1:]
    options = [("grpc.ssl_target_name_override", host), ("grpc.default_authority", host),
               ("grpc.max_receive_message_length", -1), ("grpc.enable_retries", 0)]
    seen = {}
    address = "ipv4:127.0.0.1:" + port
    if ca == "-":
        opened = grpc.insecure_channel(address, options)
    else:
        opened = grpc.secure_channel(address, grpc.ssl_channel_credentials(open(ca, "rb").read()), options)
    with opened as channel:
        if only[:1] == ["each"]:
            for method in only[1:]:
                failed = error(lambda: getattr(Calls(channel), method)(b"", timeout=PATIENCE))
                seen[method] = "OK" if failed == "no error" else failed[0]
        elif only:
            seen["status"], *seen["details"] = error(lambda: Calls(channel).Unary(b"", timeout=PATIENCE))
        else:
            for part in (unary, streams, errors, many):
                part(Calls(channel), seen)
    print(json.dumps(seen))


main()
