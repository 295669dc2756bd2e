// Package grpc makes single calls of gRPC over a unix socket, as containerd and the CRI
// answer them: one connection, one stream of HTTP/2 in the clear, one message there, and one
// or many back (RFC 9113; gRPC's PROTOCOL-HTTP2). It exists because gRPC's own library would
// take more time to start than the rest of weir.
package grpc
