//go:build !race

package process

import (
	"bytes"
	"context"
	endian "encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framed is a connection over which callers ask a server by gRPC. Each asks again as soon as it is
// answered, or gives up at its deadline, as grpc-go's clients do (RST_STREAM). Like those it has calls
// wait that the server would not serve yet (SETTINGS_MAX_CONCURRENT_STREAMS). It writes the frames
// of HTTP/2 itself, and reads of answers no more than it must: to grpc-go's clients a call costs
// more than to the servers here, so they would notice answers long after these came.
type framed struct {
	conn net.Conn
	asks asking
	seen counts // of calls that have begun, and of those that have ended
	// steady is seen, counted only from then on and while the callers ask: the first calls find
	// nobody there, and the last are followed by none.
	steady counts
	from   time.Time
	over   bool // the callers ask no more

	first  []byte   // the header block of the first call
	blocks [][]byte // those of the others, which refer to the first, by the milliseconds left

	queued []time.Time // when the callers came who wait for one of the calls that are served

	out    []byte // frames to be sent
	window int    // bytes of data that the server takes
	most   int    // calls that it serves at a time
	id     uint32 // of the next call
	begun  []call // in the order of their ids; those that have ended are taken from the front
	open   int    // calls of them that have not ended
	rest   []byte // of a frame that is not whole yet
}

// asking is what the callers of a connection ask.
type asking struct {
	method   string
	bodies   []ready // by turns
	requests int64   // that each body has
	deadline time.Duration
	callers  int                        // that ask at the same time, at most
	every    time.Duration              // between two calls; 0: whenever a caller is free
	judge    func(answer []byte) counts // what an answer says
}

// counts counts what became of requests.
type counts struct{ asked, ok, denied, refused, late int64 }

func (c *counts) add(o counts) {
	c.asked += o.asked
	c.ok += o.ok
	c.denied += o.denied
	c.refused += o.refused
	c.late += o.late
}

// call is one that has begun.
type call struct {
	at     time.Time
	answer []byte // received so far, with gRPC's prefix
	ended  bool
}

const (
	grpcPrefix   = 5 // bytes before a message: is it compressed, and its length
	framedBuffer = 64 << 10
	// framedWarmUp is how long calls are not counted as steady.
	framedWarmUp = 500 * time.Millisecond
)

// newFramed connects to a server.
func newFramed(address string, a asking) (*framed, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	f := &framed{conn: conn, asks: a, window: 65535, most: math.MaxInt, id: 1}
	var block bytes.Buffer
	headers := hpack.NewEncoder(&block)
	encode := func(ms int64) (encoded []byte, err error) {
		block.Reset()
		for _, h := range []hpack.HeaderField{{Name: ":method", Value: "POST"},
			{Name: ":scheme", Value: "http"}, {Name: ":path", Value: a.method},
			{Name: ":authority", Value: address}, {Name: "content-type", Value: "application/grpc"},
			{Name: "te", Value: "trailers"},
			{Name: "grpc-timeout", Value: fmt.Sprintf("%dm", ms), Sensitive: true}} {
			err = errors.Join(err, headers.WriteField(h))
		}
		return bytes.Clone(block.Bytes()), err
	}
	if f.first, err = encode(a.deadline.Milliseconds()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	for ms := range a.deadline.Milliseconds() + 1 {
		block, err := encode(max(ms, 1))
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		f.blocks = append(f.blocks, block)
	}
	var hello bytes.Buffer
	hello.WriteString(http2.ClientPreface)
	frames := http2.NewFramer(&hello, nil)
	err = errors.Join(
		frames.WriteSettings(http2.Setting{ID: http2.SettingEnablePush},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}),
		frames.WriteWindowUpdate(0, 1<<30))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	f.out = hello.Bytes()
	return f, nil
}

// run has the callers ask until ctx ends, and waits until all calls have.
func (f *framed) run(ctx context.Context) error {
	defer f.conn.Close()
	f.from = time.Now().Add(framedWarmUp)
	buffer := make([]byte, framedBuffer)
	due := time.Now()
	for {
		now := time.Now()
		f.over = ctx.Err() != nil
		f.giveUp(now)
		for !f.over && f.room() && !due.After(now) {
			f.queued = append(f.queued, now)
			f.count(counts{asked: f.asks.requests}, now)
			due = due.Add(f.asks.every)
		}
		if !f.room() && due.Before(now) { // nobody is free to ask what is due
			due = now
		}
		for len(f.queued) > 0 && f.open < f.most && f.window >= framedBuffer/2 {
			f.ask(f.queued[0], now)
			f.queued = f.queued[1:]
		}
		if f.over && f.open == 0 {
			return nil
		}
		if err := f.flush(now); err != nil {
			return err
		}
		until := now.Add(100 * time.Millisecond)
		if len(f.begun) > 0 {
			until = f.begun[0].at.Add(f.asks.deadline)
		}
		if !f.over && f.room() && due.Before(until) {
			until = due
		}
		if err := f.conn.SetReadDeadline(until); err != nil {
			return err
		}
		n, err := f.conn.Read(buffer)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("read of the server: %w", err)
		}
		if err := f.takes(buffer[:n], time.Now()); err != nil {
			return err
		}
	}
}

// room reports whether a caller is free to ask.
func (f *framed) room() bool {
	return f.open+len(f.queued) < f.asks.callers
}

// ask begins a call of a caller who has come at a time.
func (f *framed) ask(came, now time.Time) {
	body := f.asks.bodies[int(f.id/2)%len(f.asks.bodies)]
	block := f.blocks[(f.asks.deadline - now.Sub(came)).Milliseconds()]
	if f.id == 1 {
		block = f.first
	}
	f.frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, f.id, block)
	message := endian.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
	f.frame(http2.FrameData, http2.FlagDataEndStream, f.id, message, body)
	f.window -= grpcPrefix + len(body)
	f.begun = append(f.begun, call{at: came})
	f.id += 2
	f.open++
}

func (f *framed) count(c counts, now time.Time) {
	f.seen.add(c)
	if !f.over && !now.Before(f.from) {
		f.steady.add(c)
	}
}

// frame adds a frame to those to be sent.
func (f *framed) frame(kind http2.FrameType, flags http2.Flags, id uint32, parts ...[]byte) {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	f.out = append(f.out, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	f.out = endian.BigEndian.AppendUint32(f.out, id)
	for _, p := range parts {
		f.out = append(f.out, p...)
	}
}

func (f *framed) flush(now time.Time) error {
	if len(f.out) == 0 {
		return nil
	}
	if err := f.conn.SetWriteDeadline(now.Add(time.Minute)); err != nil {
		return err
	}
	_, err := f.conn.Write(f.out)
	f.out = f.out[:0]
	return err
}

// giveUp ends the calls whose deadline has come. All have the same, so the first are the oldest.
func (f *framed) giveUp(now time.Time) {
	for len(f.queued) > 0 && (f.over || now.Sub(f.queued[0]) >= f.asks.deadline) {
		f.count(counts{late: f.asks.requests}, now)
		f.queued = f.queued[1:]
	}
	oldest := f.id - 2*uint32(len(f.begun))
	n := 0
	for ; n < len(f.begun); n++ {
		c := &f.begun[n]
		if !c.ended && now.Sub(c.at) < f.asks.deadline {
			break
		}
		if !c.ended {
			f.frame(http2.FrameRSTStream, 0, oldest+2*uint32(n),
				endian.BigEndian.AppendUint32(nil, uint32(http2.ErrCodeCancel)))
			f.open--
			f.count(counts{late: f.asks.requests}, now)
		}
	}
	f.begun = f.begun[n:]
}

// takes takes what the server sent.
func (f *framed) takes(b []byte, now time.Time) error {
	if len(f.rest) > 0 {
		b = append(f.rest, b...)
	}
	for len(b) >= 9 {
		length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		if len(b) < 9+length {
			break
		}
		id := endian.BigEndian.Uint32(b[5:])
		if err := f.take(http2.FrameType(b[3]), http2.Flags(b[4]), id, b[9:9+length], now); err != nil {
			return err
		}
		b = b[9+length:]
	}
	f.rest = bytes.Clone(b)
	return nil
}

// take takes a frame. What headers say is not looked at: an answer without a message is a refusal.
func (f *framed) take(kind http2.FrameType, flags http2.Flags, id uint32, b []byte,
	now time.Time) error {
	switch kind {
	case http2.FrameSettings:
		if !flags.Has(http2.FlagSettingsAck) {
			for ; len(b) >= 6; b = b[6:] {
				if http2.SettingID(endian.BigEndian.Uint16(b)) == http2.SettingMaxConcurrentStreams {
					f.most = int(endian.BigEndian.Uint32(b[2:]))
				}
			}
			f.frame(http2.FrameSettings, http2.FlagSettingsAck, 0)
		}
	case http2.FramePing:
		if !flags.Has(http2.FlagPingAck) {
			f.frame(http2.FramePing, http2.FlagPingAck, 0, b)
		}
	case http2.FrameWindowUpdate:
		if id == 0 {
			f.window += int(endian.BigEndian.Uint32(b))
		}
	case http2.FrameGoAway:
		return fmt.Errorf("the server ends the connection: %q", b)
	case http2.FrameData:
		if c := f.callOf(id); c != nil {
			c.answer = append(c.answer, b...)
		}
	}
	ends := kind == http2.FrameRSTStream ||
		(kind == http2.FrameHeaders || kind == http2.FrameData) && flags.Has(http2.FlagDataEndStream)
	if c := f.callOf(id); ends && c != nil {
		f.ends(c, now)
	}
	return nil
}

// callOf returns a call that has not ended.
func (f *framed) callOf(id uint32) *call {
	oldest := f.id - 2*uint32(len(f.begun))
	if id < oldest || id >= f.id || f.begun[(id-oldest)/2].ended {
		return nil
	}
	return &f.begun[(id-oldest)/2]
}

// ends ends a call that was answered.
func (f *framed) ends(c *call, now time.Time) {
	c.ended = true
	f.open--
	switch {
	case now.Sub(c.at) > f.asks.deadline:
		f.count(counts{late: f.asks.requests}, now)
	case len(c.answer) > grpcPrefix:
		f.count(f.asks.judge(c.answer[grpcPrefix:]), now)
	default:
		f.count(counts{refused: f.asks.requests}, now)
	}
	c.answer = nil
}
