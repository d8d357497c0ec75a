// HTTP/1.1 server (Node's own) that prints every request as HOST METHOD TARGET, what it cannot read as MALFORMED, and
// answers with its name and the same.
//
// Arguments: name, port, and "lenient" for the parser that Node calls insecure.

const http = require("http");

const [name, port, manner] = process.argv.slice(2);

const options = { insecureHTTPParser: manner === "lenient", keepAliveTimeout: 600000 };
const server = http.createServer(options, (request, response) => {
  const seen = [request.headers.host ?? "-", request.method, request.url].join("\t");
  console.log(seen);
  request.on("end", () => {
    const body = Buffer.from(`[${name}\t${seen}]`, "latin1");
    response.writeHead(200, { "Content-Length": body.length });
    response.end(body);
  });
  request.resume();
});
server.on("clientError", (error, socket) => {
  if (error.code?.startsWith("HPE_")) {
    console.log(`MALFORMED ${error.code} ${JSON.stringify(error.rawPacket?.toString("latin1"))}`);
  }
  socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
});
server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
