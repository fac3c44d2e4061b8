package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
)

// used returns what counts as used of the limit of account a.
func (f *front) used(t *testing.T) int64 {
	t.Helper()
	b, err := f.Bucket(t.Context(), "account", "api", map[string]string{"account": "a"})
	suite.Must(t, err)
	return int64(b.Inspected.Used)
}

// A report charges what a use cost, a question asks before, and a reservation is settled by what was used.
func TestCostsKnownAfterwards(t *testing.T) {
	eachRedis(t, func(t *testing.T, s *servers.Server) {
		f := startNode(t, s, limit("fixed_window", 100, fronts.RoomyWindow(), ", charge: always"))
		c := client.New(f.dial(t), client.Options{Timeout: suite.Patience})
		defer c.Close()
		q := client.Request{Domain: "api", Descriptors: map[string]string{"account": "a"}}
		asks := func(want bool) {
			t.Helper()
			question := q
			question.Question = true
			if d, err := c.Check(t.Context(), question); err != nil || d.Allowed != want {
				t.Errorf("asked: %+v, %v; want %v", d, err, want)
			}
		}
		asks(true)
		reserve := q
		reserve.Cost, reserve.Receipt = 60, true
		d, err := c.Check(t.Context(), reserve)
		if err != nil || !d.Allowed || d.Receipt == "" {
			t.Fatalf("%+v, %v", d, err)
		}
		for again := range 2 {
			done, err := c.Settle(t.Context(), d.Receipt, 25)
			if err != nil || done.Used != 25 || done.Repeated != (again > 0) ||
				fmt.Sprint(done.Charges) != "[{account 35  0 0}]" {
				t.Errorf("settled: %+v, %v", done, err)
			}
		}
		q.Cost = 90
		if d, err := c.Report(t.Context(), q); err != nil || d.Allowed || d.Owed != 15 {
			t.Errorf("reported: %+v, %v", d, err)
		}
		asks(false)
		if n := f.used(t); n != 115 {
			t.Errorf("%d used, want 115", n)
		}
	})
}

// A meter charges what a stream used, whatever its steps are, and no more than there is.
func TestMeter(t *testing.T) {
	eachRedis(t, func(t *testing.T, s *servers.Server) {
		f := startNode(t, s, limit("token_bucket", 1000, 1000*time.Hour, ""))
		c := client.New(f.dial(t), client.Options{Timeout: suite.Patience})
		defer c.Close()
		total := int64(0)
		for _, step := range []int64{1, 7, 50} {
			m := c.Meter("api", map[string]string{"account": "a"}, step)
			for _, units := range []int64{1, 3, 60, 2, 10} {
				d, err := m.Use(t.Context(), units)
				if err != nil || !d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
				total += units
			}
			suite.Must(t, m.Close(t.Context()))
			if n := f.used(t); n != total {
				t.Errorf("steps of %d: %d used, want %d", step, n, total)
			}
		}
		m := c.Meter("api", map[string]string{"account": "a"}, 100)
		for {
			d, err := m.Use(t.Context(), 9)
			suite.Must(t, err)
			if !d.Allowed {
				break
			}
			total += 9
		}
		suite.Must(t, m.Close(t.Context()))
		if n := f.used(t); n != total || total > 1000 || total <= 991 {
			t.Errorf("%d used, %d admitted of 1000", n, total)
		}
	})
}

// What is left of a step is given back after a second, and the stream goes on with another one.
func TestMeterOfASlowStream(t *testing.T) {
	eachRedis(t, func(t *testing.T, s *servers.Server) {
		f := startNode(t, s, limit("fixed_window", 1000, fronts.RoomyWindow(), ""))
		c := client.New(f.dial(t), client.Options{Timeout: suite.Patience})
		defer c.Close()
		m := c.Meter("api", map[string]string{"account": "a"}, 500)
		for _, want := range []int64{500, 510} { // what was used before, and a step
			if d, err := m.Use(t.Context(), 10); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			if n := f.used(t); n != want {
				t.Errorf("%d used, want %d", n, want)
			}
			time.Sleep(time.Second) // real time: the step is too old then, however slow the machine
		}
		suite.Must(t, m.Close(t.Context()))
		if n := f.used(t); n != 20 {
			t.Errorf("%d used, want 20", n)
		}
	})
}
