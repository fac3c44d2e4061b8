//go:build reference && !race

package reference

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
	"github.com/quotad/quotad/policy/strictyaml"
)

// make reference sets these.
var (
	program        = flag.String("ratelimit", "", "program of envoyproxy/ratelimit, with its whole path")
	configurations = flag.Int("configurations", 150, "how many configurations to draw")
	requests       = flag.Int("requests", 12_000, "how many requests of every cost to play")
	costOne        = flag.Int("cost-one", 6_000, "how many requests of cost 1 to play")
	newer          = flag.Bool("newer", false, "the program is of July 2026 or newer: it loads metadata, and limits in quota mode deny")
	innerToo       = flag.Bool("inner", false, "draw values with a * before their end, too, which newer programs load")
	chargeAlways   = flag.Bool("charge-always", false, "import each limit with charge: always, so that what is denied is charged, too")
	seed           = flag.Uint64("seed", 1, "what everything drawn follows from")
)

// drawing is configurations that both servers load at once, each with domains of its own.
type drawing struct {
	each    [][]Root
	texts   [][]byte // of all files
	refused map[string]int
}

// drawAll draws configurations. Those that the import refuses it draws again, and counts by why.
func drawAll(t *testing.T, s Source) *drawing {
	d := &drawing{refused: map[string]int{}}
	for tries := 0; len(d.each) < *configurations; tries++ {
		if tries > 20**configurations {
			t.Fatalf("hardly a configuration can be imported: %v", d.refused)
		}
		roots := s.Files()
		for i := range roots {
			roots[i].Domain = fmt.Sprintf("%d-%s", len(d.each), roots[i].Domain)
		}
		texts, err := Texts(roots)
		suite.Must(t, err)
		if _, err := importedBy(texts, habit()); err != nil {
			d.refused[reason(err)]++
			continue
		}
		d.each, d.texts = append(d.each, roots), append(d.texts, texts...)
	}
	return d
}

// pair is both servers, with the same configurations.
type pair struct {
	peer, node rlsv3.RateLimitServiceClient
	output     func() string // of envoyproxy/ratelimit
}

// habit returns how the node is to charge.
func habit() Habit {
	if *chargeAlways {
		return Always
	}
	return Apart
}

// startPair starts both servers, each with a Redis of its own.
func startPair(t *testing.T, d *drawing) *pair {
	files := map[string][]byte{}
	for i, text := range d.texts {
		files[fmt.Sprintf("c%d.yaml", i)] = text
	}
	r, err := process.StartRatelimit(t.Context(), t, *program, files, "LIMIT_RESPONSE_HEADERS_ENABLED=true",
		"DISABLE_STATS=true", fmt.Sprint("RESPONSE_DYNAMIC_METADATA=", *newer), "EXPIRATION_JITTER_MAX_SECONDS=0", "LIMIT_LIMIT_HEADER=x-ratelimit-limit",
		"LIMIT_REMAINING_HEADER=x-ratelimit-remaining", "LIMIT_RESET_HEADER=x-ratelimit-reset")
	suite.Must(t, err)
	t.Setenv("QUOTAD_REDIS_TIMEOUT", "500ms") // a busy machine must not make the node decide by itself
	document, err := importedBy(d.texts, habit())
	suite.Must(t, err)
	f, err := process.Start(t.Context(), t, process.Config{Limits: string(document.Source()),
		Regions: []process.RegionConfig{{Name: "here"}}, Settings: []string{"headers: {envoy: legacy}"}})
	suite.Must(t, err)
	return &pair{output: r.Output, peer: client(t, r.GRPC), node: client(t, f.Regions[0].Nodes[0].GRPC)}
}

func client(t *testing.T, address string) rlsv3.RateLimitServiceClient {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	suite.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return rlsv3.NewRateLimitServiceClient(conn)
}

// TestReference plays the same requests to envoyproxy/ratelimit and to a node that imported the same
// configurations, one after the other. The answers of each must be those of the model of its habit,
// but for the kinds of differences that allowed lists. If every descriptor costs 1, the answers of
// both must be the same as well.
func TestReference(t *testing.T) {
	if *program == "" {
		t.Fatal("no program of envoyproxy/ratelimit: make reference builds it, or give -ratelimit")
	}
	// Where both charge whatever is left, counts differ after negative hits alone.
	every := Source{Dice: rand.New(rand.NewPCG(*seed, 3)), Zeros: true, Negative: !*chargeAlways, None: true, Inner: *innerToo, Older: !*newer}
	one := every
	one.One = true
	drawn := drawAll(t, every)
	p := startPair(t, drawn)
	g := newGame(t, p, drawn)
	g.loaded(p)
	// Each configuration is met by requests of one of the two sources only: counts differ after
	// denials of other costs than 1.
	ones := (len(drawn.each) + 2) / 3
	g.play(one, drawn.each[:ones], *costOne)
	g.play(every, drawn.each[ones:], *requests)
	g.tally.print(drawn)
	g.tally.judge(t)
}

// quoted is what differs in errors of one kind: values, and places in files.
var quoted = regexp.MustCompile(`\S*"[^"]*"|,? at \S+|\S+ before it`)

// reason returns why the import refuses a configuration, without what is this configuration's alone.
func reason(err error) string {
	if one, is := errors.AsType[*strictyaml.Error](err); is {
		return quoted.ReplaceAllString(one.Problem, "...")
	}
	return err.Error()
}
