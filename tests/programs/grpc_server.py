"""gRPC server (Debian's grpcio) of the service stories.Calls, whose messages are plain bytes.

Arguments: port [certificate key]. With a certificate it speaks TLS, else HTTP/2 in clear text.
"""

import concurrent.futures
import sys
import threading

import grpc

cancelled = threading.Semaphore(0)


def unary(request, context):
    context.send_initial_metadata([("first", "initial")])
    context.set_trailing_metadata([("last", "trailing"), ("raw-bin", bytes(range(256)))])
    return request[::-1]


def upload(requests, context):
    count = size = 0
    for request in requests:
        count, size = count + 1, size + len(request)
    return b"%d messages, %d bytes" % (count, size)


def download(request, context):
    count, size = map(int, request.split())
    for number in range(count):
        yield number.to_bytes(4, "big") * (size // 4)


def chat(requests, context):
    for request in requests:
        yield b"back: " + request


def refuse(request, context):
    context.set_trailing_metadata([("why", "because")])
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now: 100 % busy\nreally")


def half(request, context):
    yield b"one"
    context.abort(grpc.StatusCode.DATA_LOSS, "the rest is gone")


def wait(request, context):
    """Answers never; notes that the caller has given up."""
    over = threading.Event()
    context.add_callback(over.set)
    over.wait(60)
    cancelled.release()
    return b""


def cancellations(request, context):
    """Whether another caller has given up, within the time that the request says."""
    return b"yes" if cancelled.acquire(timeout=float(request)) else b"no"


def saw(request, context):
    metadata = dict(context.invocation_metadata())
    fields = [metadata.get("custom", ""), metadata.get("x-forwarded-proto", "")]
    return " ".join(fields + [str(context.time_remaining() is not None)]).encode()


def main():
    port, *files = sys.argv[1:]
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(64), options=[("grpc.max_receive_message_length", -1)])
    methods = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Upload": grpc.stream_unary_rpc_method_handler(upload),
        "Download": grpc.unary_stream_rpc_method_handler(download),
        "Chat": grpc.stream_stream_rpc_method_handler(chat),
        "Refuse": grpc.unary_unary_rpc_method_handler(refuse),
        "Half": grpc.unary_stream_rpc_method_handler(half),
        "Wait": grpc.unary_unary_rpc_method_handler(wait),
        "Cancellations": grpc.unary_unary_rpc_method_handler(cancellations),
        "Saw": grpc.unary_unary_rpc_method_handler(saw),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("stories.Calls", methods)])
    address = "127.0.0.1:" + port
    if files:
        certificate, key = (open(file, "rb").read() for file in files)
        server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
    else:
        server.add_insecure_port(address)
    server.start()
    print("ready")
    server.wait_for_termination()


main()
