package callers

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/front/wire"
)

// readyEvery is how often the watchers of health are updated. Single questions are answered with
// the present state.
const readyEvery = 500 * time.Millisecond

// maxServiceName bounds the name that a watcher asks about, in bytes: it is kept while the watcher
// stays.
const maxServiceName = 256

// ofThePeer is the name by which probes ask for the health of envoyproxy/ratelimit.
const ofThePeer = "ratelimit"

// healthService is gRPC health v1 for the whole server (""), for QuotaService, and for the name of
// envoyproxy/ratelimit. Whether its life is ready decides all. The end of that ends the calls of
// watchers: otherwise a graceful stop would wait for them.
type healthService struct {
	*health.Server
	life *wire.Life
}

func newHealthService(life *wire.Life) *healthService {
	h := &healthService{Server: health.NewServer(), life: life}
	h.refresh()
	return h
}

// refresh updates the status. After Shutdown it changes nothing.
func (h *healthService) refresh() {
	now := healthv1.HealthCheckResponse_SERVING
	if h.life.Ready() != nil {
		now = healthv1.HealthCheckResponse_NOT_SERVING
	}
	for _, service := range []string{"", quotadv1.QuotaService_ServiceDesc.ServiceName, ofThePeer} {
		h.SetServingStatus(service, now)
	}
}

// follow refreshes the status for watchers, until ctx ends.
func (h *healthService) follow(ctx context.Context) {
	h.refresh()
	repeat.Every(ctx, readyEvery, func(time.Time) { h.refresh() })
}

// Check implements grpc.health.v1.Health.
func (h *healthService) Check(ctx context.Context,
	q *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	h.refresh()
	return h.Server.Check(ctx, q)
}

// List implements grpc.health.v1.Health.
func (h *healthService) List(ctx context.Context,
	q *healthv1.HealthListRequest) (*healthv1.HealthListResponse, error) {
	h.refresh()
	return h.Server.List(ctx, q)
}

// Watch implements grpc.health.v1.Health.
func (h *healthService) Watch(q *healthv1.HealthCheckRequest,
	stream healthv1.Health_WatchServer) error {
	if len(q.GetService()) > maxServiceName {
		return status.Errorf(codes.InvalidArgument, "service: %d bytes, give at most %d",
			len(q.GetService()), maxServiceName)
	}
	h.refresh()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(h.life.Ending(), cancel)()
	return h.Server.Watch(q, watchStream{stream, ctx})
}

// watchStream is a stream with another context.
type watchStream struct {
	healthv1.Health_WatchServer
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s watchStream) Context() context.Context { return s.ctx }
