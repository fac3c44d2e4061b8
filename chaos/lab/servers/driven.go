package servers

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	wire "github.com/alicebob/miniredis/v2/server"

	"github.com/quotad/quotad/algorithms"
)

// Driven is an embedded Redis for simulators, which do one thing at a time: its TIME, and with it the end of keys' time,
// stands still between calls of Set, and it loses data when it is told to. Not safe for concurrent use.
type Driven struct {
	server *Server
	redis  *miniredis.Miniredis
	now    time.Time
	starts int
	replid atomic.Pointer[string]
}

// StartDrivenBy starts a Driven at a time, with a master_replid. An empty one stands for data without identity, as that
// of other embedded servers.
func StartDrivenBy(now time.Time, replid string) (*Driven, error) {
	m, s, err := startEmbedded("127.0.0.1:0", "")
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

// URL is where the server is.
func (d *Driven) URL() string { return d.server.URL }

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
