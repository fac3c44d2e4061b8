package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Peeked says by which limit a node would decide.
type Peeked struct {
	Limit       string // empty: no limit applies
	Algorithm   string
	Units       int64 `json:"limit_units"`
	Entitlement int64 // the region's fixed split, units
}

// Peek asks the node what it would decide, without spending units, under the bounds of Request.
func (c *Caller) Peek(ctx context.Context, q Question) (p Peeked, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return p, err
	}
	answer, err := c.request(ctx, c.node.HTTP, http.MethodPost, "/v1/peek", body)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(answer, &p); err != nil {
		return p, fmt.Errorf("read what %s would decide: %w", c, err)
	}
	return p, nil
}
