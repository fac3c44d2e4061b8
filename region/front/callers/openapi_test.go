package callers

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fronts"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// TestOpenAPIHasEveryMember: the schemas have the members of the answers, with their types.
func TestOpenAPIHasEveryMember(t *testing.T) {
	fronts.WantAnswers(t, map[string]any{"Decision": Decision{}, "Decisions": decisions{}, "Problem": denied{}},
		map[string]proto.Message{"Settlement": &quotadv1.SettleResponse{}},
		map[string][]string{"CheckRequest": checkFields, "PeekRequest": peekFields,
			"BatchRequest": []string{"requests"}, "ReportRequest": reportFields, "SettleRequest": settleFields})
}
