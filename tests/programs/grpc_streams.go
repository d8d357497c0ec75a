// gRPC streams by grpc-go: a server, or a client that keeps one stream of each kind going, each on a connection of its own.
//
// Arguments: server PORT [CERTIFICATE KEY], which prints "ready" when it listens, or
// client HOST PORT CA MESSAGES PER_SECOND, which prints in JSON what came of each stream; CA is - for clear text.
// Without TLS both speak HTTP/2 from the first byte. Messages are plain bytes.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Bytes as they are.
type plain struct{}

func (plain) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (plain) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (plain) Name() string   { return "plain" }
func (plain) String() string { return "plain" }

// One call of work in turn for each of count messages, so many a second.
func paced(count, rate int, work func(number int) error) error {
	begun := time.Now()
	for number := 0; number < count; number++ {
		time.Sleep(time.Until(begun.Add(time.Duration(number) * time.Second / time.Duration(rate))))
		if err := work(number); err != nil {
			return fmt.Errorf("message %d after %v: %w", number, time.Since(begun).Round(time.Millisecond), err)
		}
	}
	return nil
}

type stream interface {
	SendMsg(m interface{}) error
	RecvMsg(m interface{}) error
}

func send(s stream, text string) error {
	message := []byte(text)
	return s.SendMsg(&message)
}

func expect(s stream, text string) error {
	var message []byte
	if err := s.RecvMsg(&message); err != nil {
		return err
	}
	if string(message) != text {
		return fmt.Errorf("%q instead of %q", message, text)
	}
	return nil
}

// Echoes every message.
func chat(_ interface{}, s grpc.ServerStream) error {
	for {
		var message []byte
		if err := s.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(&message); err != nil {
			return err
		}
	}
}

// Sends so many messages, so many a second, as the only message says.
func download(_ interface{}, s grpc.ServerStream) error {
	var message []byte
	if err := s.RecvMsg(&message); err != nil {
		return err
	}
	var count, rate int
	if _, err := fmt.Sscan(string(message), &count, &rate); err != nil {
		return err
	}
	return paced(count, rate, func(number int) error { return send(s, "tick "+strconv.Itoa(number)) })
}

// Says in the end how many messages have come.
func upload(_ interface{}, s grpc.ServerStream) error {
	for count := 0; ; count++ {
		var message []byte
		if err := s.RecvMsg(&message); err == io.EOF {
			return send(s, strconv.Itoa(count))
		} else if err != nil {
			return err
		}
	}
}

func serve(port string, files []string) error {
	options := []grpc.ServerOption{grpc.CustomCodec(plain{})}
	if len(files) == 2 {
		creds, err := credentials.NewServerTLSFromFile(files[0], files[1])
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(creds))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "stories.Streams",
		HandlerType: (*interface{})(nil),
		Streams: []grpc.StreamDesc{
			{StreamName: "Chat", Handler: chat, ServerStreams: true, ClientStreams: true},
			{StreamName: "Download", Handler: download, ServerStreams: true},
			{StreamName: "Upload", Handler: upload, ClientStreams: true},
		},
	}, struct{}{})
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return server.Serve(listener)
}

func dial(host, port, ca string) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithAuthority(host), grpc.WithBlock(), grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})),
	}
	if ca == "-" {
		options = append(options, grpc.WithInsecure())
	} else {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		creds := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: host})
		options = append(options, grpc.WithTransportCredentials(creds))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return grpc.DialContext(ctx, "127.0.0.1:"+port, options...)
}

// Keeps a stream of one kind going; what came of it.
func call(host, port, ca, kind string, count, rate int) string {
	connection, err := dial(host, port, ca)
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(count/rate+60)*time.Second)
	defer cancel()
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	s, err := connection.NewStream(ctx, desc, "/stories.Streams/"+kind)
	if err != nil {
		return err.Error()
	}
	received := 0
	switch kind {
	case "Chat":
		err = paced(count, rate, func(number int) error {
			text := "word " + strconv.Itoa(number)
			if err := send(s, text); err != nil {
				return err
			}
			received++
			return expect(s, text)
		})
	case "Download":
		err = send(s, fmt.Sprint(count, rate))
		for ; err == nil && received < count; received++ {
			err = expect(s, "tick "+strconv.Itoa(received))
		}
	case "Upload":
		err = paced(count, rate, func(number int) error { return send(s, "part "+strconv.Itoa(number)) })
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err == nil && kind == "Upload" {
		err = expect(s, strconv.Itoa(count))
		received = count
	}
	var rest []byte
	if err == nil {
		err = s.RecvMsg(&rest)
	}
	if err != io.EOF {
		return fmt.Sprintf("after %d messages: %v", received, err)
	}
	return fmt.Sprintf("%d messages", received)
}

func main() {
	arguments := os.Args[1:]
	if len(arguments) >= 2 && arguments[0] == "server" {
		log.Fatal(serve(arguments[1], arguments[2:]))
	}
	if len(arguments) != 6 || arguments[0] != "client" {
		log.Fatal("the arguments are at the top of this file")
	}
	host, port, ca := arguments[1], arguments[2], arguments[3]
	count, err := strconv.Atoi(arguments[4])
	if err != nil {
		log.Fatal(err)
	}
	rate, err := strconv.Atoi(arguments[5])
	if err != nil {
		log.Fatal(err)
	}
	type outcome struct{ kind, text string }
	outcomes := make(chan outcome)
	kinds := []string{"Chat", "Download", "Upload"}
	for _, kind := range kinds {
		go func(kind string) { outcomes <- outcome{kind, call(host, port, ca, kind, count, rate)} }(kind)
	}
	seen := map[string]string{}
	for range kinds {
		one := <-outcomes
		seen[one.kind] = one.text
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		log.Fatal(err)
	}
}
