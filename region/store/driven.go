package store

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	wire "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
)

// Driven is an embedded Redis for simulators, which do one thing at a time: its TIME, and with it the end of keys' time,
// stands still between calls of Set, and it loses data and calls when it is told to. Not safe for concurrent use, nor are
// its stores.
type Driven struct {
	outage
	server *Server
	redis  *miniredis.Miniredis
	now    time.Time
	starts int
	replid atomic.Pointer[string]
}

// StartDrivenBy starts a Driven at a time, with a master_replid. An empty one stands for data without identity, as that
// of other embedded servers.
func StartDrivenBy(now time.Time, replid string) (*Driven, error) {
	m, s, err := startEmbedded()
	if err != nil {
		return nil, err
	}
	d := &Driven{server: s, redis: m, now: now}
	m.SetTime(now)
	d.replid.Store(&replid)
	if err := d.loadScripts(); err != nil {
		m.Close()
		return nil, err
	}
	m.Server().SetPreHook(d.identify)
	return d, nil
}

// loadScripts gives the server the scripts that stores name by their digest, so that each call takes one round trip.
func (d *Driven) loadScripts() error {
	client, err := plainClient(d.server.URL)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, s := range []algorithms.Script{algorithms.DecideScript, algorithms.LendScript, algorithms.CreditScript, algorithms.InspectScript,
		algorithms.RefundScript, algorithms.ResetScript, algorithms.RecallScript, algorithms.RestoreScript, algorithms.BookScript} {
		if err := client.ScriptLoad(context.Background(), s.Source).Err(); err != nil {
			return fmt.Errorf("load script %s into the embedded Redis: %w", s.Name, err)
		}
	}
	return nil
}

// Close ends the server.
func (d *Driven) Close() error { return d.server.Close() }

// longest is longer than any call takes: timeouts are the one thing in which real time counts. By a node's clock a call
// takes no time.
const longest = time.Hour

// Connect returns a node's way to the server, with the node's clock. The outages of the server are those of the stores
// that are connected so.
func (d *Driven) Connect(now func() time.Time) (*Store, error) {
	s, err := Connect(Options{URL: d.server.URL, Timeout: longest, Now: now})
	if err != nil {
		return nil, err
	}
	s.deadline = DefaultTimeout
	s.topology.(single).client.AddHook(outages{d})
	return s, nil
}

// identify answers with the server's master_replid, of which the embedded server knows nothing.
func (d *Driven) identify(c *wire.Peer, command string, args ...string) bool {
	replid := *d.replid.Load()
	if replid == "" || command != "INFO" || len(args) != 1 || !strings.EqualFold(args[0], "replication") {
		return false
	}
	c.WriteBulk("# Replication\r\nrole:master\r\nmaster_replid:" + replid + "\r\n")
	return true
}

// Set sets the server's clock, forward or back. A step back lengthens what keys have left to live: they end when the
// clock shows the same as before it.
func (d *Driven) Set(now time.Time) {
	d.Expire() // by the clock of before
	back := d.now.Sub(now)
	d.redis.SetTime(now)
	if back > 0 {
		d.redis.FastForward(-back)
	}
	d.now = now
}

// Expire ends the keys whose time is up by the server's clock, as any call does.
func (d *Driven) Expire() { d.redis.DB(0) }

// Holds says whether there is a key.
func (d *Driven) Holds(key string) bool { return d.redis.Exists(key) }

// Flush loses all data, as FLUSHALL does: the master_replid stays.
func (d *Driven) Flush() { d.redis.FlushAll() }

// Delete deletes a key, as DEL does.
func (d *Driven) Delete(key string) { d.redis.Del(key) }

// Restart loses all data and gives the server another master_replid, as a Redis does that saves nothing. Scripts stay.
func (d *Driven) Restart() {
	d.redis.FlushAll()
	d.starts++
	d.Rename(fmt.Sprintf("%s.%d", d.Replid(), d.starts))
}

// Replid returns the server's master_replid.
func (d *Driven) Replid() string { return *d.replid.Load() }

// Rename gives the server another master_replid with the same data, as a replica has that was promoted.
func (d *Driven) Rename(replid string) { d.replid.Store(&replid) }

// outages have calls fail at the client, so that it is certain whether they have run.
type outages struct{ of *Driven }

// calls are the first words of what a store sends; a client sends others by itself, to begin a connection.
var calls = map[string]bool{"eval": true, "evalsha": true, "info": true, "ping": true}

func (o outages) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o outages) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return o.process([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (o outages) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return o.process(cmds, func() error { return next(ctx, cmds) })
	}
}

func (o outages) process(cmds []redis.Cmder, send func() error) error {
	if !calls[cmds[0].Name()] {
		return send()
	}
	runs, lost := o.of.trip()
	if runs {
		if err := send(); lost == nil {
			return err
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(lost)
	}
	return lost
}
