package operators

import (
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

func (s *Server) bucket(w http.ResponseWriter, r *http.Request) {
	domain, descriptors, err := parseQuery(r.URL.RawQuery)
	var b region.Bucket
	if err == nil {
		err = s.options.MayName(r.Context(), domain)
	}
	if err == nil {
		b, err = s.node.Bucket(r.Context(), r.PathValue("limit"), domain, descriptors)
	}
	if err != nil {
		wire.WriteProblem(w, wire.ProblemOf(err))
		return
	}
	wire.Write(w, "application/json", http.StatusOK, bucketMessage(b))
}

// parseQuery reads a domain and descriptors. Every error is a *admit.FieldError.
func parseQuery(raw string) (domain string, descriptors map[string]string, err error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return "", nil, &admit.FieldError{Field: "query",
			Problem: "is malformed; write it as ?domain=api&account=42, percent-encoded"}
	}
	descriptors = map[string]string{}
	for name, values := range query {
		field := "descriptors." + name
		if name == "domain" {
			field = name
		}
		switch {
		case len(values) > 1:
			return "", nil, &admit.FieldError{Field: field, Problem: "is given more than once"}
		case !utf8.ValidString(name) || !utf8.ValidString(values[0]):
			return "", nil, &admit.FieldError{Field: field, Problem: "is not valid UTF-8"}
		case name == "domain":
			domain = values[0]
		default:
			descriptors[name] = values[0]
		}
	}
	return domain, descriptors, nil
}
