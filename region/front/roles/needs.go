package roles

import "slices"

// Role is what a caller may do.
type Role string

const (
	Check   Role = "check"
	Read    Role = "read"
	Operate Role = "operate"
	Admin   Role = "admin"
)

const (
	// Open is the need of calls that ask for no role: probes of load balancers, and the files of
	// the console.
	Open Role = "open"
	// Known is the need of calls that every caller of the file may make.
	Known Role = "known"
)

// Roles returns the roles that a caller can have.
func Roles() []Role { return []Role{Check, Read, Operate, Admin} }

// rank orders the roles of which each includes those before it. check is not among them.
var rank = []Role{Read, Operate, Admin}

// covers reports whether a caller with the role may make calls that need another one.
func (r Role) covers(need Role) bool {
	if r == need {
		return true
	}
	has, needs := slices.Index(rank, r), slices.Index(rank, need)
	return has >= 0 && needs >= 0 && has >= needs
}

// needs says which role each call needs: HTTP calls by their path, gRPC calls by their full name. A
// caller with domains is held to them where the call names one.
var needs = map[string]Role{
	// The API: what callers need to be admitted.
	"/v1/check":                          Check,
	"/v1/check-batch":                    Check,
	"/v1/peek":                           Check,
	"/v1/authz":                          Check,
	"/v1/report":                         Check,
	"/v1/settle":                         Check,
	"/quotad.v1.QuotaService/Check":      Check,
	"/quotad.v1.QuotaService/CheckBatch": Check,
	"/quotad.v1.QuotaService/Peek":       Check,
	"/quotad.v1.QuotaService/Report":     Check,
	"/quotad.v1.QuotaService/Take":       Check,
	"/quotad.v1.QuotaService/Settle":     Check,
	"/json":                              Check,
	"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit":                   Check,
	"/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas": Check,

	// The admin listener: what operators need.
	"/v1/status":           Read,
	"/v1/overview":         Read,
	"/v1/watch":            Read,
	"/v1/explain/{limit}":  Read,
	"/v1/buckets":          Read,
	"/v1/buckets/{limit}":  Read,
	"/v1/document":         Read,
	"/v1/documents":        Read,
	"/v1/apply":            Admin,
	"/metrics":             Read,
	"/v1/reset":            Operate,
	"/v1/recover":          Admin,
	"/v1/rehearse":         Operate,
	"/v1/cut":              Operate,
	"/debug/pprof/":        Admin,
	"/debug/pprof/profile": Admin,
	"/debug/pprof/trace":   Admin,

	// The console's files tell nothing of the node, and a browser shows nothing to get them. What
	// the page reads needs the roles above.
	"/{$}":            Open,
	"/console/{file}": Open,

	// Both: probes, and what the calls look like.
	"/v1/openapi.yaml":             Known,
	"/livez":                       Open,
	"/readyz":                      Open,
	"/healthcheck":                 Open,
	"/grpc.health.v1.Health/Check": Open,
	"/grpc.health.v1.Health/List":  Open,
	"/grpc.health.v1.Health/Watch": Open,
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      Known,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": Known,
}

// NeedOf returns the role that a call needs, and whether the table has the call.
func NeedOf(call string) (Role, bool) {
	need, known := needs[call]
	return need, known
}

// Calls returns all calls of the table.
func Calls() []string {
	var all []string
	for call := range needs {
		all = append(all, call)
	}
	slices.Sort(all)
	return all
}
