package api

import (
	_ "embed" // openapi.yaml
	"net/http"
)

// openAPI describes the paths of both listeners. A test holds it against the handlers.
//
//go:embed openapi.yaml
var openAPI []byte

// describe answers with the description of the HTTP paths of both listeners.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI) // if the write fails, the caller has gone
}
