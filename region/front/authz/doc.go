// Package authz makes requests for quotad of what a proxy says of its clients' requests, as nginx'
// auth_request, Caddy's forward_auth and Traefik's forwardAuth do.
//
// A [Mapping] is a file of rules. The first rule whose conditions a request meets says its domain,
// and what each descriptor is made of: a header, a parameter of the query, a cookie, the path, the
// method, the host, the client's address, or a fixed text.
//
//	trusted: [127.0.0.1/32, 10.0.0.0/8]
//	on_no_rule: allow
//	rules:
//	  - domain: api
//	    path: /v1/
//	    methods: [POST]
//	    descriptors:
//	      account: {header: X-Account}
//	      plan: {header: X-Plan, default: free}
//	      address: {client_address: true, v6_bits: 64}
//
// There are no templates: a descriptor is the value of its source as it came, so nothing in a value
// can become another descriptor. A value that is long or no UTF-8 is replaced by its digest. With
// values a few known ones, such as API keys, are replaced by what stands for them, and all others are
// as good as missing:
//
//	account: {header: X-Api-Key, values: {key-of-acme: acme}, optional: true}
//
// What the client asked for (its method, URI, host and address) stands in headers that the proxy
// sets: X-Forwarded-Method, -Uri, -Host and -For, or those that the field forwarded names, of which
// there is one for each fact. They are believed only if the connection comes from a trusted
// address; a client that reaches the node by itself cannot make them up. A rule that needs what
// nobody said refuses the request.
package authz
