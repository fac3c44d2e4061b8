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
// when the call would be admitted. A violation has the domain as api_service, the limit's name as
// quota_id, what it counts as quota_metric ("requests" if the limit does not say), the limit as
// quota_value, and what the call is described by as quota_dimensions, unless all together is above
// 4 KiB or Options.NoDimensions leaves it out.
//
// The trailer grpc-retry-pushback-ms tells the client's library when it may send the call again by
// itself, if the client has a retry policy for the code. A time above 5 s is not waited for: the
// trailer is -1 then, and the caller is told at once. So it is if the call never fits.
//
// A call is UNAVAILABLE if the region's store failed and the limit says to deny then, if no node can
// be asked and the client's choice is Fail or Deny, and if the node refuses to decide.
//
// A stream is charged once, when it begins. Its messages are not counted.
package grpclimit
