package policy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/api"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
)

// fatal is the name of a limit by which a document is one that quotad cannot read.
const fatal = "unreadable"

// reader is a node to which documents come.
type reader struct {
	*region.Node
	tenure *tenure.Tenure
	log    bytes.Buffer
}

// alone is a node without a server for other nodes.
type alone struct{ *region.Node }

func (alone) HandleDescribe(peer.DescribeHandler) {}

// read returns a node of us, started with a document. fetched is what eu has.
func read(t *testing.T, server *lab.Twin, j *journal.Journal, d *policy.Document,
	fetched []byte) (*reader, error) {
	way, _ := server.Connect(time.Now)
	r := &reader{}
	var err error
	r.Node, err = region.New(region.Config{Region: "us", Node: "n1", Nodes: 1, Policy: d,
		Bootstrap: true, Store: way, Journal: j, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Fetch: func(context.Context, string, policy.Epoch) ([]byte, error) { return fetched, nil },
	}, region.Stepping{Taken: func(exchange.Event) {}})
	if err != nil {
		return nil, err
	}
	r.tenure, _, _ = r.Wings()
	return r, r.tenure.Open(t.Context())
}

// stands checks that a node counted and logged a fault, and works under a document as before.
func (r *reader) stands(t *testing.T, d *policy.Document, faults float64) {
	t.Helper()
	if got := r.tenure.Rules().Document.Epoch(); got != d.Epoch() {
		t.Errorf("%s is in force, not %s", got, d.Epoch())
	}
	counted := 0.0
	all, err := r.Metrics().Gather()
	suite.Must(t, err)
	for _, family := range all {
		if family.GetName() == "quotad_recovered_panics_total" {
			for _, m := range family.GetMetric() {
				counted += m.GetCounter().GetValue()
			}
		}
	}
	if counted != faults {
		t.Errorf("%v faults are counted, want %v", counted, faults)
	}
	if log := r.log.String(); !strings.Contains(log, "planted: "+fatal) ||
		!strings.Contains(log, "policy.parse") {
		t.Errorf("the log does not have the panic with its stack:\n%s", log)
	}
}

// TestADocumentThatPanics: a document that quotad fails to read is refused with an error of its own
// kind, whichever way it comes: in the node's file, from another region, from the store, from the
// journal, or applied by an operator. The node goes on under the document before.
func TestADocumentThatPanics(t *testing.T) {
	regions := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	good := documents.Parse(t, 1, regions, "name: l, window: 1s, limit: 100")
	better := documents.Parse(t, 3, regions, "name: l, window: 1s, limit: 200")
	bad := documents.Parse(t, 2, regions, "name: "+fatal+", window: 1s, limit: 200")
	defer policy.PlantPanic(fatal)()
	server := func() *lab.Twin {
		return lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(time.Now().UnixMicro()) },
			"a")
	}
	start := func(t *testing.T, server *lab.Twin, fetched []byte) *reader {
		j, _, err := journals.New("us", "n1")
		suite.Must(t, err)
		r, err := read(t, server, j, good, fetched)
		suite.Must(t, err)
		return r
	}
	t.Run("file", func(t *testing.T) {
		r, path := start(t, server(), nil), filepath.Join(t.TempDir(), "limits.yaml")
		write := func(d *policy.Document) {
			suite.Must(t, errors.Join(os.WriteFile(path+".new", d.Source(), 0o600),
				os.Rename(path+".new", path)))
		}
		write(good)
		if d, err := policy.Load(path); err != nil || d.Epoch() != good.Epoch() {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		refused := make(chan error, 10)
		watching.Go(func() {
			adopt := func(d *policy.Document) error { return r.Adopt(ctx, d) }
			if err := policy.Watch(ctx, path, nil, good, adopt,
				func(err error) { r.NoteFile(err); refused <- err }); err != nil {
				t.Error(err)
			}
		})
		write(bad)
		if _, is := errors.AsType[*policy.Fault](<-refused); !is {
			t.Error("another kind of error")
		}
		r.stands(t, good, 1)
		write(better)
		suite.Eventually(t, "the next document is in force", func() bool {
			return r.tenure.Rules().Document.Epoch() == better.Epoch()
		})
		cancel()
		watching.Wait()
	})
	t.Run("another region", func(t *testing.T) {
		r := start(t, server(), bad.Source())
		r.tenure.Hear("eu", []tenure.Told{{Epoch: bad.Epoch(), At: 1}})
		r.tenure.Review(t.Context())
		r.stands(t, good, 1)
	})
	t.Run("store", func(t *testing.T) {
		store := server()
		r := start(t, store, nil)
		way, _ := store.Connect(time.Now)
		j, _, err := journals.New("us", "n2")
		suite.Must(t, err)
		other, err := tenure.New(tenure.Config{Region: "us", Node: "n2", Policy: bad, Store: way,
			Journal: j, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Changed: func(tenure.Change) {}})
		if err == nil {
			_ = other.Open(t.Context()) // it cannot be read there either, but comes after the first
			err = other.Adopt(t.Context(), bad)
		}
		suite.Must(t, err)
		if err := r.tenure.OpenOnce(t.Context()); err == nil {
			t.Error("the store's documents are taken")
		}
		r.stands(t, good, 1)
	})
	t.Run("journal", func(t *testing.T) {
		j, _, err := journals.New("us", "n1")
		suite.Must(t, err)
		if err := j.SaveDocuments([]journal.Document{{Version: bad.Version, Source: bad.Source()}}); err != nil {
			t.Fatal(err)
		}
		_, err = read(t, server(), j, good, nil)
		if _, is := errors.AsType[*policy.Fault](err); !is {
			t.Errorf("the node starts under another document than before: %v", err)
		}
	})
	t.Run("apply", func(t *testing.T) {
		r := start(t, server(), nil)
		s := api.New(alone{r.Node}, slog.New(slog.NewTextHandler(&r.log, nil)), api.Options{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		suite.Must(t, err)
		var serving sync.WaitGroup
		serving.Go(func() { _ = s.Operators.Serve(l) })
		defer serving.Wait()
		defer s.Close()
		apply := func(d *policy.Document) (int, string) {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				"http://"+l.Addr().String()+"/v1/apply", bytes.NewReader(d.Source()))
			suite.Must(t, err)
			q.Header.Set("Content-Type", "application/yaml")
			got, err := http.DefaultClient.Do(q)
			suite.Must(t, err)
			defer got.Body.Close()
			text, err := io.ReadAll(got.Body)
			suite.Must(t, err)
			return got.StatusCode, string(text)
		}
		if code, text := apply(bad); code != http.StatusInternalServerError ||
			!strings.Contains(text, "a fault of quotad") {
			t.Errorf("answered %d: %s", code, text)
		}
		r.stands(t, good, 1)
		if code, text := apply(better); code != http.StatusOK {
			t.Errorf("the next document: %d: %s", code, text)
		}
	})
}
