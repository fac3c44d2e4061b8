package admit

import (
	"encoding/base64"
	"errors"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	receiptv1 "github.com/quotad/quotad/proto/receipt/v1"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/memory/store"
)

// sealing returns a node of region "here" in which nothing runs but whose store is open, and a
// receipt it could have given.
func sealing(t testing.TB) (*Limiter, *receiptv1.Receipt) {
	t.Helper()
	d := documents.Parse(t, 1, hereAndThere, "name: minute, limit: 100, window: 1m")
	n := unstarted(t, 1, d)
	suite.Must(t, n.tenure.Open(t.Context()))
	return n, &receiptv1.Receipt{Region: "here", Generation: n.store.Generation(), Id: "n1:1:1",
		AtUs: 1, Cost: 1,
		Charges: []*receiptv1.Charge{{Bucket: []byte(d.Limits[0].Bucket(map[string]string{"account": "a"})), Cell: 1}}}
}

// sealed returns a receipt of any body as a node with the secret would give it.
func sealed(secret string, body []byte) string {
	return receiptPrefix + base64.RawURLEncoding.EncodeToString(append(seal(secret, body), body...))
}

func given(t testing.TB, n *Limiter, r *receiptv1.Receipt) string {
	t.Helper()
	body, err := proto.Marshal(r)
	suite.Must(t, err)
	return sealed(n.store.Secret(), body)
}

// refusal says how a receipt was refused. The error must be one on which a caller can act.
func refusal(t testing.TB, err error) string {
	t.Helper()
	var field *invalid.Field
	switch {
	case errors.As(err, &field) && field.Name == "receipt":
		return "field"
	case errors.Is(err, ErrReceipt):
		return "receipt"
	}
	t.Errorf("refused with %v", err)
	return ""
}

func TestOpenReceipt(t *testing.T) {
	n, r := sealing(t)
	good := given(t, n, r)
	if got, err := n.receipts.open(good); err != nil || !proto.Equal(got, r) {
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
		"the prefix alone": {receiptPrefix, "field", "send the receipt of a decision"},
		"words":            {"please", "field", "send the receipt of a decision"},
		"no base64":        {receiptPrefix + "!!!!", "field", "send the receipt of a decision"},
		"padded":           {good + "=", "field", "send the receipt of a decision"},
		"the seal alone":   {sealed(n.store.Secret(), nil), "receipt", `region ""`},
		"no message": {sealed(n.store.Secret(), []byte{0xff}), "field",
			"send the receipt of a decision"},
		"10 MB of letters": {strings.Repeat("a", 10<<20), "field",
			"send the receipt of a decision"},
		"10 MB in the message": {given(t, n,
			with(func(r *receiptv1.Receipt) { r.Region = strings.Repeat("h", 10<<20) })), "field",
			"longer than any receipt"},
		"another region": {given(t, n, with(func(r *receiptv1.Receipt) { r.Region = "there" })),
			"receipt", `it is of region "there", this is "here": send it there`},
		"an earlier loss": {given(t, n, with(func(r *receiptv1.Receipt) { r.Generation-- })),
			"receipt", "lost its data"},
		"a later generation": {given(t, n, with(func(r *receiptv1.Receipt) { r.Generation++ })),
			"receipt", "lost its data"},
		"another secret": {sealed("guessed", body), "receipt",
			"not given by this region, or was changed"},
		"no secret": {sealed("", body), "receipt",
			"not given by this region, or was changed"},
		"another's seal": {receiptPrefix +
			base64.RawURLEncoding.EncodeToString(append(seal(n.store.Secret(), []byte("x")),
				body...)), "receipt", "was changed"},
		"a seal of zeros": {receiptPrefix +
			base64.RawURLEncoding.EncodeToString(append(make([]byte, 32), body...)), "receipt",
			"was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := n.receipts.open(tc.receipt)
			if got != nil || refusal(t, err) != tc.refused || !strings.Contains(err.Error(),
				tc.says) {
				t.Errorf("%v, %.300v; want %q", got, err, tc.says)
			}
		})
	}
}

// TestChangedReceipts: no byte of a receipt can be changed, left out or added.
func TestChangedReceipts(t *testing.T) {
	n, r := sealing(t)
	good := given(t, n, r)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(good, receiptPrefix))
	suite.Must(t, err)
	refused := func(what string, at int, b []byte) {
		t.Helper()
		if got, err := n.receipts.open(receiptPrefix +
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
			if got, err := n.receipts.open(spelt); err == nil && !proto.Equal(got, r) || err != nil &&
				refusal(t, err) == "" {
				t.Errorf("%q for letter %d: %v, %v", letter, i, got, err)
			}
		}
	}
}

// A node whose store is not open has given no receipt, and takes none, not even one sealed with the
// empty secret.
func TestReceiptsBeforeTheStoreIsOpen(t *testing.T) {
	n, r := sealing(t)
	closed, err := store.Connect(store.Options{URL: "redis://127.0.0.1:1"})
	suite.Must(t, err)
	defer closed.Close()
	receipt := given(t, n, r)
	n.receipts.store, r.Generation = closed, 0
	for _, receipt := range []string{receipt, given(t, n, r)} {
		if got, err := n.receipts.open(receipt); got != nil || refusal(t, err) != "receipt" {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// A receipt that is sealed rightly but names no bucket cannot be one of ours; it is refused, and
// nothing is asked.
func TestReceiptOfNoBucket(t *testing.T) {
	n, r := sealing(t)
	for _, id := range []string{"", "minute", "token", string(r.Charges[0].Bucket) + "x"} {
		odd := proto.CloneOf(r)
		odd.Charges[0].Bucket = []byte(id)
		if _, err := n.receipts.Refund(t.Context(), given(t, n, odd)); refusal(t, err) != "field" {
			t.Errorf("bucket %q: %v", id, err)
		}
	}
}

// An unknown receipt is not repeated at length in the error.
func TestARefusalIsShort(t *testing.T) {
	n, r := sealing(t)
	r.Region = strings.Repeat("h", 60_000)
	if _, err := n.receipts.open(given(t, n, r)); err == nil || len(err.Error()) > 400 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// A body that is not sealed is not unpacked.
func TestAnUnsealedReceiptIsNotUnpacked(t *testing.T) {
	n, _ := sealing(t)
	body := []byte(strings.Repeat("\x32\x00", 1<<20)) // a million charges of nothing
	receipt := sealed("guessed", body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := n.receipts.open(receipt); err == nil {
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
	n, r := sealing(f)
	body, err := proto.Marshal(r)
	suite.Must(f, err)
	for _, seed := range []string{"", receiptPrefix, given(f, n, r), string(body),
		strings.Repeat("\xff", 40), string(policy.BucketID("1:a,"))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		secret := n.store.Secret()
		switch got, err := n.receipts.open(s); {
		case err != nil:
			refusal(t, err)
		default:
			raw, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(s, receiptPrefix))
			if string(seal(secret, raw[32:])) != string(raw[:32]) {
				t.Errorf("%q is taken without a seal: %v", s, got)
			}
		}
		// As if the region had sealed it: what is taken is of this region and generation.
		got, err := n.receipts.open(sealed(secret, []byte(s)))
		if err != nil {
			refusal(t, err)
		} else if got.GetRegion() != "here" || got.GetGeneration() != n.store.Generation() {
			t.Errorf("%q is taken: %v", s, got)
		}
	})
}
