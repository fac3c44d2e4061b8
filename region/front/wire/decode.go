package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/quotad/quotad/region/base/invalid"
)

// MaxBodyBytes bounds the body of a request, but for a batch.
const MaxBodyBytes = 64 << 10

const wantJSON = "send the request with Content-Type: application/json, in UTF-8"

// Whether a request must say that its body is JSON.
const SaysJSON, AnyType = true, false

// ReadBody reads the JSON body of a request, of at most the given bytes.
func ReadBody[T any](w http.ResponseWriter, r *http.Request, typed bool, most int64,
	decode func([]byte) (T, error)) (q T, err error) {
	if typed && !isJSON(r.Header.Values("Content-Type")) {
		return q, Refuse(http.StatusUnsupportedMediaType, wantJSON)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return q, unreadable(err)
	}
	return decode(body)
}

// Answer reads a request that comes as JSON, has it done, and writes what came of it as JSON. ctx knows
// where the request came from.
func Answer[Q any](w http.ResponseWriter, r *http.Request, decode func([]byte) (Q, error),
	do func(ctx context.Context, q Q) (any, error)) {
	q, err := ReadBody(w, r, SaysJSON, MaxBodyBytes, decode)
	var done any
	if err == nil {
		done, err = do(WithAct(r), q)
	}
	Reply(w, done, err)
}

// unreadable returns the error for a body that could not be read. It was too large, too slow, or
// not as its headers say, and each is the caller's fault. A caller that has gone reads no answer.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("read the body: %w", err)
	}
	return invalid.Fieldf(WholeBody, "is not whole, or its chunks are malformed; send as many bytes as Content-Length says, or chunks as HTTP/1.1 has them")
}

// isJSON accepts application/json without a charset or in UTF-8. It refuses a missing content type,
// because pages of other sites can send that without the browser asking the node first.
func isJSON(values []string) bool {
	if len(values) != 1 {
		return false
	}
	if values[0] == "application/json" { // nearly always
		return true
	}
	kind, params, err := mime.ParseMediaType(values[0])
	charset, given := params["charset"]
	return err == nil && kind == "application/json" &&
		(!given || strings.EqualFold(charset, "utf-8"))
}
