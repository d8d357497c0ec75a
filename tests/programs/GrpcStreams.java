// gRPC streams by grpc-java: a server, or a client that keeps one stream of each kind going, each on a connection of its
// own.
//
// Arguments: server PORT [CERTIFICATE KEY], which prints "ready" when it listens, or
// client HOST PORT CA MESSAGES PER_SECOND, which prints in JSON what came of each stream; CA is - for clear text.
// Messages are plain bytes.

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NegotiationType;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.stream.Collectors;

public final class GrpcStreams {
    private static final String SERVICE = "stories.Streams";

    /** Text as it is. */
    private static final class Plain implements MethodDescriptor.Marshaller<String> {
        @Override
        public InputStream stream(String message) {
            return new ByteArrayInputStream(message.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream message) {
            try {
                return new String(message.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static MethodDescriptor<String, String> method(String kind) {
        return MethodDescriptor.<String, String>newBuilder(new Plain(), new Plain())
            .setType(MethodDescriptor.MethodType.BIDI_STREAMING)
            .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, kind))
            .build();
    }

    /** Sends so many messages, so many a second. */
    private static void paced(StreamObserver<String> to, int count, int rate, IntFunction<String> message)
        throws InterruptedException {
        long begun = System.nanoTime();
        for (int number = 0; number < count; number++) {
            long due = begun + TimeUnit.SECONDS.toNanos(number) / rate;
            TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
            to.onNext(message.apply(number));
        }
    }

    /** What a server does with the messages of a call. */
    private abstract static class Messages implements StreamObserver<String> {
        final StreamObserver<String> answers;

        Messages(StreamObserver<String> answers) {
            this.answers = answers;
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onCompleted() {
            answers.onCompleted();
        }
    }

    /** Echoes every message. */
    private static StreamObserver<String> chat(StreamObserver<String> answers) {
        return new Messages(answers) {
            @Override
            public void onNext(String message) {
                answers.onNext(message);
            }
        };
    }

    /** Sends so many messages, so many a second, as the only message says. */
    private static StreamObserver<String> download(StreamObserver<String> answers) {
        return new Messages(answers) {
            @Override
            public void onNext(String message) {
                String[] numbers = message.split(" ");
                int count = Integer.parseInt(numbers[0]);
                int rate = Integer.parseInt(numbers[1]);
                new Thread(() -> {
                    try {
                        paced(answers, count, rate, number -> "tick " + number);
                        answers.onCompleted();
                    } catch (InterruptedException error) {
                        answers.onError(error);
                    }
                }).start();
            }

            @Override
            public void onCompleted() {}
        };
    }

    /** Says in the end how many messages have come. */
    private static StreamObserver<String> upload(StreamObserver<String> answers) {
        return new Messages(answers) {
            private int count;

            @Override
            public void onNext(String message) {
                count++;
            }

            @Override
            public void onCompleted() {
                answers.onNext(Integer.toString(count));
                answers.onCompleted();
            }
        };
    }

    private static void serve(int port, String[] files) throws IOException, InterruptedException {
        NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port));
        if (files.length == 2) {
            builder.sslContext(GrpcSslContexts.forServer(new File(files[0]), new File(files[1])).build());
        }
        builder.addService(ServerServiceDefinition.builder(SERVICE)
            .addMethod(method("Chat"), ServerCalls.asyncBidiStreamingCall(GrpcStreams::chat))
            .addMethod(method("Download"), ServerCalls.asyncBidiStreamingCall(GrpcStreams::download))
            .addMethod(method("Upload"), ServerCalls.asyncBidiStreamingCall(GrpcStreams::upload))
            .build());
        io.grpc.Server server = builder.build().start();
        System.out.println("ready");
        server.awaitTermination();
    }

    /** Compares answers with those that are expected. */
    private static final class Answers implements StreamObserver<String> {
        private final int expected;
        private final IntFunction<String> text;
        private int seen;
        final CompletableFuture<String> fault = new CompletableFuture<>();

        Answers(int expected, IntFunction<String> text) {
            this.expected = expected;
            this.text = text;
        }

        @Override
        public void onNext(String answer) {
            if (!answer.equals(text.apply(seen))) {
                fault.complete(answer + " instead of " + text.apply(seen));
            }
            seen++;
        }

        @Override
        public void onError(Throwable error) {
            fault.complete("after " + seen + " messages: " + Status.fromThrowable(error));
        }

        @Override
        public void onCompleted() {
            fault.complete(seen == expected ? "" : seen + " messages instead of " + expected);
        }
    }

    private static ManagedChannel connect(String host, int port, String ca) throws IOException {
        NettyChannelBuilder builder =
            NettyChannelBuilder.forAddress(new InetSocketAddress("127.0.0.1", port)).overrideAuthority(host);
        if (ca.equals("-")) {
            builder.negotiationType(NegotiationType.PLAINTEXT);
        } else {
            builder.sslContext(GrpcSslContexts.forClient().trustManager(new File(ca)).build());
        }
        return builder.build();
    }

    /** Keeps a stream of one kind going; what came of it. */
    private static String call(String host, int port, String ca, String kind, int count, int rate) {
        Answers answers = kind.equals("Upload")
            ? new Answers(1, number -> Integer.toString(count))
            : new Answers(count, number -> (kind.equals("Chat") ? "word " : "tick ") + number);
        ManagedChannel channel = null;
        try {
            channel = connect(host, port, ca);
            CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(count / rate + 60, TimeUnit.SECONDS);
            StreamObserver<String> to = ClientCalls.asyncBidiStreamingCall(channel.newCall(method(kind), options), answers);
            switch (kind) {
                case "Chat" -> paced(to, count, rate, number -> "word " + number);
                case "Download" -> to.onNext(count + " " + rate);
                default -> paced(to, count, rate, number -> "part " + number);
            }
            to.onCompleted();
            String fault = answers.fault.get();
            return fault.isEmpty() ? count + " messages" : fault;
        } catch (Exception error) {
            return answers.fault.getNow(error.toString());
        } finally {
            if (channel != null) {
                channel.shutdownNow();
            }
        }
    }

    private static String ask(String host, int port, String ca, int count, int rate) throws InterruptedException {
        Map<String, String> seen = new TreeMap<>();
        Thread[] threads = new Thread[3];
        String[] kinds = {"Chat", "Download", "Upload"};
        for (int index = 0; index < kinds.length; index++) {
            String kind = kinds[index];
            threads[index] = new Thread(() -> {
                String outcome = call(host, port, ca, kind, count, rate);
                synchronized (seen) {
                    seen.put(kind, outcome);
                }
            });
            threads[index].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return seen.entrySet().stream()
            .map(one -> quoted(one.getKey()) + ": " + quoted(one.getValue()))
            .collect(Collectors.joining(", ", "{", "}"));
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length >= 2 && arguments[0].equals("server")) {
            serve(Integer.parseInt(arguments[1]), java.util.Arrays.copyOfRange(arguments, 2, arguments.length));
        } else if (arguments.length == 6 && arguments[0].equals("client")) {
            int port = Integer.parseInt(arguments[2]);
            int count = Integer.parseInt(arguments[4]);
            int rate = Integer.parseInt(arguments[5]);
            System.out.println(ask(arguments[1], port, arguments[3], count, rate));
        } else {
            System.err.println("the arguments are at the top of this file");
            System.exit(2);
        }
    }
}
