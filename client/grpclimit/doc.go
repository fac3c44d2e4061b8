// Package grpclimit asks quotad about each call of a gRPC server.
//
//	limits, err := client.Dial(client.Options{OnUnreachable: client.Allow}, "quotad:8081")
//	perPeer := grpclimit.By(grpclimit.Values{"ip": grpclimit.Peer()})
//	o := grpclimit.Options{Domain: "api", Key: perPeer}
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(grpclimit.Unary(limits, o)),
//		grpc.ChainStreamInterceptor(grpclimit.Stream(limits, o)))
//
// A denied call is RESOURCE_EXHAUSTED, and the handler does not see it. It carries a
// google.rpc.QuotaFailure with the limits that denied it, and a google.rpc.RetryInfo if it is known
// when the call would be admitted. It is UNAVAILABLE if the region's store failed and the limit
// says to deny then, if no node can be asked and the client's choice is Fail or Deny, and if the
// node refuses to decide.
//
// A stream is charged once, when it begins. Its messages are not counted.
package grpclimit
