// Package envoy plays an Envoy whose rate limit quota filter asks a server for assignments (RLQS).
// It behaves as Envoy's source does, with its surprises, and not as quotad would like it to:
//
//   - The first request of a bucket id is decided by what is configured for no assignment, and
//     reported at once. From then on a timer of 5 s reports all bucket ids in one message.
//   - Counters are set to 0 before a report is sent. If the stream is down, what they said is lost,
//     unless that very report opens it again. Only the first request of all and the timer open the
//     stream: the first request of a later bucket id does not.
//   - A token bucket with other max_tokens, tokens_per_fill or nanoseconds of fill_interval than the
//     one before is a new one, and full; with Config.Carries it has the same part of its tokens as
//     the one before. With the same it goes on, whatever the seconds of fill_interval are.
//   - Times to live and fill intervals count as whole seconds. A time to live of none ends at once.
//   - When a time to live is over, the bucket is dropped. What comes later is a new, full one.
//   - requests_per_time_unit, and an assignment without a strategy, are passed over, so that the one
//     before goes on. An action that is neither an assignment nor an abandonment ends the one before.
//   - A stream that breaks ends no assignment.
//
// The facts are those of source/extensions/filters/http/rate_limit_quota/global_client_impl.cc of
// envoyproxy/envoy, read in 2026. Envoy 1.40 is asked the same as this one by make envoy; it behaves
// as with Config.Carries.
//
// The package is written from those facts and imports nothing of quotad, so that it judges.
//
//	envoy.go   an Envoy as a machine without a clock: requests, timers and messages in, reports out
//	client.go  an Envoy on a gRPC connection
package envoy
