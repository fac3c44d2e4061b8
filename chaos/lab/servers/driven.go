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

// Driven is an embedded Redis for simulators, which do one thing at a time. Its TIME, and with it
// the expiry of keys, stands still between calls of Set. It loses data on demand. Not safe for
// concurrent use.
type Driven struct {
	server *Server
	redis  *miniredis.Miniredis
	now    time.Time
	starts int
	replid atomic.Pointer[string]
}

// StartDrivenBy starts a Driven at a time, with a master_replid. If that is empty its data has no
// identity, as with other embedded servers.
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

// loadScripts loads the scripts that stores call by their digest, so that each call takes one round
// trip.
func (d *Driven) loadScripts() error {
	client, err := plainClient(d.server.URL)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, s := range []algorithms.Script{algorithms.DecideScript, algorithms.LendScript,
		algorithms.CreditScript, algorithms.InspectScript,
		algorithms.SettleScript, algorithms.ResetScript, algorithms.RecallScript,
		algorithms.RestoreScript, algorithms.BookScript, algorithms.AssignScript} {
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

// identify answers INFO with the server's master_replid, which the embedded server does not know.
func (d *Driven) identify(c *wire.Peer, command string, args ...string) bool {
	replid := *d.replid.Load()
	if replid == "" || command != "INFO" || len(args) != 1 ||
		!strings.EqualFold(args[0], "replication") {
		return false
	}
	c.WriteBulk("# Replication\r\nrole:master\r\nmaster_replid:" + replid + "\r\n")
	return true
}

// Set sets the server's clock, forward or back. After a step back keys live longer: they expire
// when the clock again shows the time at which they were to expire.
func (d *Driven) Set(now time.Time) {
	d.Expire() // by the old clock
	back := d.now.Sub(now)
	d.redis.SetTime(now)
	if back > 0 {
		d.redis.FastForward(-back)
	}
	d.now = now
}

// Expire drops the keys that have expired by the server's clock, as any call does.
func (d *Driven) Expire() { d.redis.DB(0) }

// Holds reports whether a key exists.
func (d *Driven) Holds(key string) bool { return d.redis.Exists(key) }

// Flush loses all data, as FLUSHALL does. The master_replid stays.
func (d *Driven) Flush() { d.redis.FlushAll() }

// Delete deletes a key, as DEL does.
func (d *Driven) Delete(key string) { d.redis.Del(key) }

// Restart loses all data and gives the server another master_replid, as a Redis that saves nothing
// does. Scripts stay loaded.
func (d *Driven) Restart() {
	d.redis.FlushAll()
	d.starts++
	d.Rename(fmt.Sprintf("%s.%d", d.Replid(), d.starts))
}

// Replid returns the server's master_replid.
func (d *Driven) Replid() string { return *d.replid.Load() }

// Rename gives the server another master_replid and keeps its data, as on a promoted replica.
func (d *Driven) Rename(replid string) { d.replid.Store(&replid) }
