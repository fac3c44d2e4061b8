package receipts

import (
	"encoding/base64"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	receiptv1 "github.com/quotad/quotad/proto/receipt/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// now is the clock of a twin.
func now() quantity.StoreTime { return quantity.StoreTime(time.Now().UnixMicro()) }

// sealing returns what gives the receipts of a node of region "here" whose store is open, and a receipt
// it could have given.
func sealing(t testing.TB) (*Receipts, *receiptv1.Receipt) {
	t.Helper()
	d := documents.Parse(t, 1, []string{"here: {weight: 40}", "there: {weight: 60}"}, "name: minute, limit: 100, window: 1m")
	r := rules.New(barrier.Only(d, "here"), nil)
	opened, _ := lab.NewTwin(now, "a").Connect(time.Now)
	_, err := opened.Open(t.Context(), store.Opening{Region: "here", Epoch: r.Epoch, Bootstrap: true})
	suite.Must(t, err)
	return New(Config{Region: "here", Store: opened, Rules: func() *rules.Rules { return r }, Rights: rights{},
			Charged: func(string, quantity.Units, quantity.Units) {}}),
		&receiptv1.Receipt{Region: "here", Generation: opened.Generation(), Id: "n1:1:1", AtUs: 1, Cost: 1,
			Charges: []*receiptv1.Charge{{Bucket: []byte(d.Limits[0].Bucket(map[string]string{"account": "a"})), Cell: 1}}}
}

// sealed returns a receipt of any body as a node with the secret would give it.
func sealed(secret string, body []byte) string {
	return prefix + base64.RawURLEncoding.EncodeToString(append(seal(secret, body), body...))
}

func given(t testing.TB, s *Receipts, r *receiptv1.Receipt) string {
	t.Helper()
	body, err := proto.Marshal(r)
	suite.Must(t, err)
	return sealed(s.config.Store.Secret(), body)
}

// refusal says how a receipt was refused. The error must be one on which a caller can act.
func refusal(t testing.TB, err error) string {
	t.Helper()
	var field *invalid.Field
	switch {
	case errors.As(err, &field) && field.Name == "receipt":
		return "field"
	case errors.Is(err, ErrRefused):
		return "receipt"
	}
	t.Errorf("refused with %v", err)
	return ""
}

func TestOpenReceipt(t *testing.T) {
	s, r := sealing(t)
	good := given(t, s, r)
	if got, _, err := s.open(good); err != nil || !proto.Equal(got, r) {
		t.Fatalf("its own receipt: %v, %v", got, err)
	}
	with := func(change func(*receiptv1.Receipt)) *receiptv1.Receipt {
		other := proto.CloneOf(r)
		change(other)
		return other
	}
	body, err := proto.Marshal(r)
	suite.Must(t, err)
	for name, tc := range map[string]struct {
		receipt string
		refused string
		says    string
	}{
		"nothing":          {"", "field", "send the receipt of a decision"},
		"the prefix alone": {prefix, "field", "send the receipt of a decision"},
		"words":            {"please", "field", "send the receipt of a decision"},
		"no base64":        {prefix + "!!!!", "field", "send the receipt of a decision"},
		"padded":           {good + "=", "field", "send the receipt of a decision"},
		"the seal alone":   {sealed(s.config.Store.Secret(), nil), "receipt", `region ""`},
		"no message": {sealed(s.config.Store.Secret(), []byte{0xff}), "field",
			"send the receipt of a decision"},
		"10 MB of letters": {strings.Repeat("a", 10<<20), "field",
			"send the receipt of a decision"},
		"10 MB in the message": {given(t, s,
			with(func(r *receiptv1.Receipt) { r.Region = strings.Repeat("h", 10<<20) })), "field",
			"longer than any receipt"},
		"another region": {given(t, s, with(func(r *receiptv1.Receipt) { r.Region = "there" })),
			"receipt", `it is of region "there", this is "here": send it there`},
		"an earlier loss": {given(t, s, with(func(r *receiptv1.Receipt) { r.Generation-- })),
			"receipt", "lost its data"},
		"a later generation": {given(t, s, with(func(r *receiptv1.Receipt) { r.Generation++ })),
			"receipt", "lost its data"},
		"another secret": {sealed("guessed", body), "receipt",
			"not given by this region, or was changed"},
		"no secret": {sealed("", body), "receipt",
			"not given by this region, or was changed"},
		"another's seal": {prefix +
			base64.RawURLEncoding.EncodeToString(append(seal(s.config.Store.Secret(), []byte("x")),
				body...)), "receipt", "was changed"},
		"a seal of zeros": {prefix +
			base64.RawURLEncoding.EncodeToString(append(make([]byte, 32), body...)), "receipt",
			"was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := s.open(tc.receipt)
			if got != nil || refusal(t, err) != tc.refused || !strings.Contains(err.Error(),
				tc.says) {
				t.Errorf("%v, %.300v; want %q", got, err, tc.says)
			}
		})
	}
}

// TestChangedReceipts: no byte of a receipt can be changed, left out or added.
func TestChangedReceipts(t *testing.T) {
	s, r := sealing(t)
	good := given(t, s, r)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(good, prefix))
	suite.Must(t, err)
	refused := func(what string, at int, b []byte) {
		t.Helper()
		if got, _, err := s.open(prefix +
			base64.RawURLEncoding.EncodeToString(b)); got != nil || refusal(t, err) == "" {
			t.Errorf("%s byte %d: %v is taken", what, at, got)
		}
	}
	for i := range raw {
		for bit := range 8 {
			changed := append([]byte{}, raw...)
			changed[i] ^= 1 << bit
			refused("flipped bit in", i, changed)
		}
		refused("cut at", i, raw[:i])
		refused("without", i, append(append([]byte{}, raw[:i]...), raw[i+1:]...))
	}
	refused("one more", len(raw), append(append([]byte{}, raw...), 0))
	// The text may have another spelling (its last letter has bits to spare): then it is the same
	// receipt.
	for i := range good {
		for _, letter := range "A-_z9= \n\x00\xff" {
			spelt := good[:i] + string(letter) + good[i+1:]
			if got, _, err := s.open(spelt); err == nil && !proto.Equal(got, r) || err != nil &&
				refusal(t, err) == "" {
				t.Errorf("%q for letter %d: %v, %v", letter, i, got, err)
			}
		}
	}
}

// A node whose store is not open has given no receipt, and takes none, not even one sealed with the
// empty secret.
func TestReceiptsBeforeTheStoreIsOpen(t *testing.T) {
	s, r := sealing(t)
	closed, err := store.Connect(store.Options{URL: "redis://127.0.0.1:1"})
	suite.Must(t, err)
	defer closed.Close()
	receipt := given(t, s, r)
	s.config.Store, r.Generation = closed, 0
	for _, receipt := range []string{receipt, given(t, s, r)} {
		if got, _, err := s.open(receipt); got != nil || refusal(t, err) != "receipt" {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// A receipt that is sealed rightly but names no bucket cannot be one of ours; it is refused, and
// nothing is asked.
func TestReceiptOfNoBucket(t *testing.T) {
	s, r := sealing(t)
	for _, id := range []string{"", "minute", "token", string(r.Charges[0].Bucket) + "x"} {
		odd := proto.CloneOf(r)
		odd.Charges[0].Bucket = []byte(id)
		if _, err := s.Settle(t.Context(), given(t, s, odd), 0); refusal(t, err) != "field" {
			t.Errorf("bucket %q: %v", id, err)
		}
	}
}

// The error repeats little of what a caller wrote into a receipt, and only as text.
func TestARefusalIsShort(t *testing.T) {
	s, r := sealing(t)
	for _, name := range []string{strings.Repeat("h", 40_000), strings.Repeat("é", 20_000),
		strings.Repeat("\x00", 40_000), strings.Repeat("\U0010ffff", 10_000)} {
		r.Region = name
		_, _, err := s.open(given(t, s, r))
		if refusal(t, err) != "receipt" || len(err.Error()) > 400 || strings.ToValidUTF8(err.Error(), "") != err.Error() ||
			!strings.HasSuffix(err.Error(), "; trying again here does not help") {
			t.Errorf("told %q", err)
		}
	}
}

// A body that is not sealed is not unpacked.
func TestAnUnsealedReceiptIsNotUnpacked(t *testing.T) {
	s, _ := sealing(t)
	body := []byte(strings.Repeat("\x32\x00", 1<<20)) // a million charges of nothing
	receipt := sealed("guessed", body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := s.open(receipt); err == nil {
		t.Error("taken")
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes of receipt, %d bytes of memory", len(receipt),
		after.TotalAlloc-before.TotalAlloc)
	if after.TotalAlloc-before.TotalAlloc > 3*uint64(len(receipt)) {
		t.Error("it was unpacked")
	}
}

func FuzzOpenReceipt(f *testing.F) {
	s, r := sealing(f)
	body, err := proto.Marshal(r)
	suite.Must(f, err)
	for _, seed := range []string{"", prefix, given(f, s, r), string(body),
		strings.Repeat("\xff", 40), string(policy.BucketID("1:a,"))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		secret := s.config.Store.Secret()
		switch got, _, err := s.open(text); {
		case err != nil:
			refusal(t, err)
		default:
			raw, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, prefix))
			if string(seal(secret, raw[32:])) != string(raw[:32]) {
				t.Errorf("%q is taken without a seal: %v", text, got)
			}
		}
		// As if the region had sealed it: what is taken is of this region and generation.
		got, _, err := s.open(sealed(secret, []byte(text)))
		if err != nil {
			refusal(t, err)
		} else if got.GetRegion() != "here" || got.GetGeneration() != s.config.Store.Generation() {
			t.Errorf("%q is taken: %v", text, got)
		}
	})
}
